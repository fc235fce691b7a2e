"""Claims of shared work, among processes that a test names."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from domain.repositories.work_claims import Work


class MemoryClaims:
    """Implements `WorkClaims`. What a test puts into `elsewhere` is another process's."""

    def __init__(self) -> None:
        self.elsewhere: set[tuple[Work, str]] = set()
        self.held: list[tuple[Work, str]] = []

    @asynccontextmanager
    async def hold(self, work: Work, subjects: Sequence[str]) -> AsyncIterator[frozenset[str]]:
        ours = frozenset(subject for subject in subjects if (work, subject) not in self.elsewhere)
        self.held += [(work, subject) for subject in ours]
        try:
            yield ours
        finally:
            for subject in ours:
                self.held.remove((work, subject))
