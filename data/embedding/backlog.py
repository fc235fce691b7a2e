"""The embedder of a backlog: in a process of its own, which lets the language model and the app go first."""

import asyncio
from collections.abc import Sequence
from types import TracebackType

from data.children.lines import Line
from data.children.process import Child, ChildProcess
from data.embedding.minilm import DIMENSIONS, MAX_CHARACTERS
from data.embedding.queue import EmbeddingQueue
from data.embedding.weights import EmbedderWeights
from domain.errors import ModelDamaged, ModelUnavailable

EMBEDDER = Child(
    arguments=("-m", "data.embedding.start"),
    name="embedding",
    lost=ModelUnavailable,
    what_now="Another is started for the notes that wait.",
)
IDLE_S = 60.0
"""After so long without work the process ends, and gives back 200 MB."""
_LOAD_S, _EMBED_S = 600.0, 300.0
_STUCK_S = 60.0
"""Even where others want every core, a few milliseconds a second are left; no CPU and no disk at all for so long is a hang."""


class BacklogEmbedder:
    """Implements `Embedder`, as a context that ends the process. One text at a time; the others wait in the lane."""

    def __init__(self, weights: EmbedderWeights, queue: EmbeddingQueue, *, idle_s: float = IDLE_S) -> None:
        self._weights = weights
        self._queue = queue
        self._idle_s = idle_s
        self._turn = asyncio.Lock()
        self._process: ChildProcess | None = None
        self._ending: asyncio.TimerHandle | None = None

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process is not None and self._process.alive else None

    async def __aenter__(self) -> "BacklogEmbedder":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def embed(self, text: str) -> Sequence[float]:
        """384 numbers, later when the machine is busy. Raises `QueueFull`; `ModelUnavailable`, `ModelDamaged` or
        `StoreBusy` if the weights are not to be had, and `ModelUnavailable` if the process is lost."""
        return await self._queue.run(lambda: self._embed(text))

    async def _embed(self, text: str) -> Sequence[float]:
        async with self._turn:
            self._stay()
            try:
                process = await self._started()
                answer = await self._ask(
                    process, {"text": text[:MAX_CHARACTERS]}, _EMBED_S, "embedding a note"
                )
                vector: list[float] = answer["vector"]
            except BaseException:
                await self._end()  # what comes next over its pipe would be the answer to this
                raise
            self._ending = asyncio.get_running_loop().call_later(self._idle_s, process.kill)
            return vector

    async def _started(self) -> ChildProcess:
        if self._process is not None:
            if self._process.alive:
                return self._process
            await self._end()
        folder = await self._weights.ensure()
        process = self._process = await ChildProcess.start(EMBEDDER)
        answer = await self._ask(process, {"folder": str(folder)}, _LOAD_S, "loading its weights")
        if "error" in answer:
            raise ModelDamaged(answer["error"])
        return process

    async def _ask(self, process: ChildProcess, line: Line, limit_s: float, doing: str) -> Line:
        process.send(line)
        return await process.receive(limit_s, doing, idle_s=_STUCK_S)

    def _stay(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    async def _end(self) -> None:
        self._stay()
        process, self._process = self._process, None
        if process is not None:
            await process.close()
