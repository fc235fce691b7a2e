"""What the scheduler did in the last minutes, and its counters."""

from collections.abc import AsyncIterator
from typing import Protocol

from domain.entities.scheduler import History, SchedulerChange, SchedulerMetrics


class SchedulerHistory(Protocol):
    """Kept in memory, within limits; lost when the program ends."""

    def recent(self) -> History:
        """The runs, swaps and decisions of the window that ends now."""
        ...

    def watch(self) -> AsyncIterator[SchedulerChange]:
        """Every record from now on, in order, until the reader leaves.

        A reader that falls behind loses the oldest and is told how many. Raises `TooManyWatchers`.
        """
        ...

    def export(self) -> tuple[str, ...]:
        """The window as lines of JSON, in the format of `uniun simulate --json`; the last is the summary."""
        ...

    def metrics(self) -> SchedulerMetrics:
        """Counters since the start, queue lengths and shares of this moment."""
        ...
