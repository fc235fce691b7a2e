"""Works off the durable queue of notes that need a vector. The queue is in the database, so nothing here can be lost."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from domain.errors import UniunError
from domain.repositories.embedder import Embedder
from domain.repositories.vectors import VectorRepository
from domain.repositories.work_claims import WorkClaims

LOOK_S = 15.0
"""So often the queue is looked at without being told: other processes save notes too."""
PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0
BATCH = 64

Waiting = tuple[str, str, str]
"""Note id, content hash, text."""


class EmbeddingWorker:
    """`run` it until it is cancelled; a note whose vector was not stored by then waits for the next run."""

    def __init__(
        self,
        vectors: VectorRepository,
        embedder: AbstractAsyncContextManager[Embedder],
        claims: WorkClaims,
    ) -> None:
        """The embedder is opened for as long as one of the two below runs. One text is embedded at a time, so that a
        search finds a place in the lane beside a backlog."""
        self._vectors = vectors
        self._embedder = embedder
        self._claims = claims
        self._bell = asyncio.Event()
        self._stored = 0
        self.error: str | None = None
        """Why it pauses; none while it works."""

    def wake(self, note_ids: Sequence[str] = ()) -> None:
        """Notes were saved."""
        self._bell.set()

    async def run(self) -> None:
        """Never returns. What fails is tried again after a pause, which doubles up to a minute."""
        async with self._embedder as embedder:
            await self._run(embedder)

    async def work_off(self, progress: Callable[[int], None] = lambda stored: None) -> int:
        """Implements `EmbeddingBacklog`."""
        async with self._embedder as embedder:
            return await self._work_off(embedder, progress)

    async def _run(self, embedder: Embedder) -> None:
        pause = PAUSE_S
        while True:
            self._bell.clear()
            try:
                progress = await self._work_off(embedder)
            except UniunError as error:
                self.error = str(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            self.error, pause = None, PAUSE_S
            if not progress:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._bell.wait(), LOOK_S)

    async def _work_off(
        self, embedder: Embedder, progress: Callable[[int], None] = lambda stored: None
    ) -> int:
        before = self._stored
        while batch := await self._vectors.waiting(BATCH):
            async with self._claims.hold("embed", [note_id for note_id, _, _ in batch]) as ours:
                for note_id, content_hash, text in batch:
                    if note_id in ours:
                        vector = await embedder.embed(text)
                        # False: the note has changed meanwhile, and waits again, or is gone.
                        self._stored += await self._vectors.store(note_id, content_hash, vector)
            progress(self._stored - before)
        return self._stored - before
