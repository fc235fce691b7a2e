"""Works off the durable queue of notes that need a vector. The queue is in the database, so nothing here can be lost."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from data.rest import Rest
from domain.errors import UniunError
from domain.repositories.embedder import Embedder
from domain.repositories.vectors import VectorRepository
from domain.repositories.work_claims import WorkClaims

LOOK_S = 15.0
"""So often the queue is looked at without being told: other processes save notes too."""
PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0
BATCH = 64
OLD_TURN = 4
"""Every so manieth look takes what waits longest, so that nothing waits for ever while other notes are changed."""
CLAIMED = 8
"""Of a batch at a time. Who waits for every vector makes those again that another process is at."""

Waiting = tuple[str, str, str]
"""Note id, content hash, text."""


class EmbeddingWorker:
    """`run` it until it is cancelled; a note whose vector was not stored by then waits for the next run."""

    def __init__(
        self,
        vectors: VectorRepository,
        embedder: AbstractAsyncContextManager[Embedder],
        claims: WorkClaims,
        rest: Rest | None = None,
    ) -> None:
        """The embedder is opened for as long as one of the two below runs. One text is embedded at a time, so that a
        search finds a place in the lane beside a backlog. `run` keeps the rest, with no note claimed and no place in the
        lane taken; who waits for `work_off` does not wait for it."""
        self._vectors = vectors
        self._embedder = embedder
        self._claims = claims
        self._rest = rest
        self._bell = asyncio.Event()
        self._stored = 0
        self._looks = 0
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
        before = self._stored

        def tell() -> None:
            progress(self._stored - before)

        async with self._embedder as embedder:
            await self._work_off(embedder, tell)
            await self._take_over(embedder, tell)
        return self._stored - before

    async def _run(self, embedder: Embedder) -> None:
        pause = PAUSE_S
        while True:
            self._bell.clear()
            try:
                progress = await self._work_off(embedder, rest=self._rest)
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
        self, embedder: Embedder, tell: Callable[[], None] = lambda: None, rest: Rest | None = None
    ) -> bool:
        """What no other process is at; whether there was any."""
        before = self._stored
        while True:
            if rest is not None:
                await rest.over()
            self._looks += 1
            oldest = self._looks % OLD_TURN == 0
            batch = await self._vectors.waiting(CLAIMED if oldest else BATCH, oldest=oldest)
            if not batch:
                return self._stored > before
            for first in range(0, len(batch), CLAIMED):
                if first and rest is not None and rest.due():
                    break
                await self._embed_some(embedder, batch[first : first + CLAIMED], tell, rest)

    async def _embed_some(
        self, embedder: Embedder, some: Sequence[Waiting], tell: Callable[[], None], rest: Rest | None
    ) -> None:
        """One at least, so that answers with short pauses between them do not hold the backlog up for ever."""
        async with self._claims.hold("embed", [note_id for note_id, _, _ in some]) as ours:
            for at, waiting in enumerate(one for one in some if one[0] in ours):
                if at and rest is not None and rest.due():
                    return
                await self._embed(embedder, waiting)
                tell()

    async def _take_over(self, embedder: Embedder, tell: Callable[[], None]) -> None:
        """The backlog of an app may be slow at what it holds, on a busy machine. A vector that is made twice is the same;
        from the other end of the line few are."""
        while batch := await self._vectors.waiting(BATCH, others_too=True):
            await self._embed(embedder, batch[-1])
            tell()

    async def _embed(self, embedder: Embedder, waiting: Waiting) -> None:
        note_id, content_hash, text = waiting
        vector = await embedder.embed(text)
        # False: the note has changed meanwhile, and waits again, or is gone.
        self._stored += await self._vectors.store(note_id, content_hash, vector)
