"""The embedder as an answer wants it: soon, or not at all."""

import asyncio
from collections.abc import Sequence

from domain.errors import ModelUnavailable
from domain.repositories.embedder import Embedder

PATIENCE_S = 5.0
MOST_LATE = 4


class ImpatientEmbedder:
    """Implements `Embedder`. Somebody waits for the answer, so a vector that does not come soon is done without.

    The work goes on: after the weights have been fetched, the next question finds them.
    """

    def __init__(self, embedder: Embedder, *, patience_s: float = PATIENCE_S) -> None:
        self._embedder = embedder
        self._patience_s = patience_s
        self._late: set[asyncio.Future[Sequence[float]]] = set()

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, text: str) -> Sequence[float]:
        """Raises `ModelUnavailable` when it takes too long, and what the embedder raises."""
        if len(self._late) >= MOST_LATE:
            raise self._not_ready()
        work = asyncio.ensure_future(self._embedder.embed(text))
        try:
            done, _ = await asyncio.wait({work}, timeout=self._patience_s)
        except asyncio.CancelledError:
            work.cancel()
            raise
        if done:
            return work.result()
        self._late.add(work)
        work.add_done_callback(self._forget)
        raise self._not_ready()

    def _forget(self, work: asyncio.Future[Sequence[float]]) -> None:
        self._late.discard(work)
        if not work.cancelled():
            work.exception()  # whoever asks next is told

    def _not_ready(self) -> ModelUnavailable:
        return ModelUnavailable(
            "The embedder is busy, or its weights are still being fetched. Later questions will find more."
        )
