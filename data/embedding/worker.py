"""Works off the durable queue of notes that need a vector. The queue is in the database, so nothing here can be lost."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from domain.errors import UniunError
from domain.repositories.embedder import Embedder
from domain.repositories.vectors import VectorRepository

LOOK_S = 15.0
"""So often the queue is looked at without being told: other processes save notes too."""
PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0
BATCH = 64

Waiting = tuple[str, str, str]
"""Note id, content hash, text."""


class EmbeddingWorker:
    """`run` it until it is cancelled; a note whose vector was not stored by then waits for the next run."""

    def __init__(self, vectors: VectorRepository, embedder: Embedder, width: int) -> None:
        """`width` texts are embedded at once: the lane's own width, so that a search never waits behind a backlog."""
        self._vectors = vectors
        self._embedder = embedder
        self._width = width
        self._bell = asyncio.Event()
        self._stored = 0
        self.error: str | None = None
        """Why it pauses; none while it works."""

    def wake(self, note_ids: Sequence[str] = ()) -> None:
        """Notes were saved."""
        self._bell.set()

    async def run(self) -> None:
        """Never returns. What fails is tried again after a pause, which doubles up to a minute."""
        pause = PAUSE_S
        while True:
            self._bell.clear()
            try:
                progress = await self.work_off()
            except UniunError as error:
                self.error = str(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            self.error, pause = None, PAUSE_S
            if not progress:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._bell.wait(), LOOK_S)

    async def work_off(self, progress: Callable[[int], None] = lambda stored: None) -> int:
        """Implements `EmbeddingBacklog`."""
        before = self._stored
        while batch := await self._vectors.waiting(BATCH):
            queue = iter(batch)
            try:
                async with asyncio.TaskGroup() as lane:
                    for _ in range(self._width):
                        lane.create_task(self._take_from(queue))
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
            progress(self._stored - before)
        return self._stored - before

    async def _take_from(self, queue: Iterator[Waiting]) -> None:
        for note_id, content_hash, text in queue:
            vector = await self._embedder.embed(text)
            # False: the note has changed meanwhile, and waits again, or is gone.
            stored = await self._vectors.store(note_id, content_hash, vector)
            self._stored += stored  # not in one statement: others of the lane count while this one waits
