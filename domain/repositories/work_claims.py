"""Which of several processes, on one machine or several, does a piece of shared work."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

Work = Literal["read", "embed", "deck"]
"""Reading a note into the graph, embedding it (the subject is its id); keeping a deck filled (the subject is its scope)."""


class WorkClaims(Protocol):
    """Claims end with what holds them: they lapse when a process gives no sign of life."""

    def hold(self, work: Work, subjects: Sequence[str]) -> AbstractAsyncContextManager[frozenset[str]]:
        """Gives those subjects that are this process's while entered; other processes leave them alone. Those that another
        process has, or that are on no list of work any more, are not among them. Callers in one process share them."""
        ...
