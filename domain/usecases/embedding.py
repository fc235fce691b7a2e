"""Vectors for the notes that wait for one."""

from collections.abc import Callable

from domain.repositories.embedder import EmbeddingBacklog
from domain.repositories.vectors import VectorRepository


class EmbedNotesUseCase:
    """Does at once what an open app does in the background."""

    def __init__(self, vectors: VectorRepository, backlog: EmbeddingBacklog) -> None:
        self._vectors = vectors
        self._backlog = backlog

    async def __call__(self, progress: Callable[[int, int], None] = lambda done, total: None) -> int:
        """`progress` gets how many are done and how many there were. Raises `ModelError` if there is no embedder."""
        total = await self._vectors.waiting_count()
        progress(0, total)
        return await self._backlog.work_off(lambda done: progress(done, max(done, total)))
