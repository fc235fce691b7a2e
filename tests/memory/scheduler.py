"""A history in which nothing has happened, unless it is given something."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from domain.entities.scheduler import History, SchedulerChange, SchedulerMetrics

EMPTY = History(at=0.0, now=datetime(2026, 1, 1, tzinfo=UTC), since=0.0, runs=(), swaps=(), decisions=())


class FixedHistory:
    """Implements `SchedulerHistory`."""

    def __init__(self, history: History = EMPTY, changes: tuple[SchedulerChange, ...] = ()) -> None:
        self.history = history
        self.changes = changes

    def recent(self) -> History:
        return self.history

    async def watch(self) -> AsyncIterator[SchedulerChange]:
        for change in self.changes:
            yield change

    def export(self) -> tuple[str, ...]:
        return ('{"t":0.0,"event":"summary"}',)

    def metrics(self) -> SchedulerMetrics:
        return SchedulerMetrics(
            queues=(),
            kinds=(),
            running=0,
            swaps=0,
            swap_s=0.0,
            swaps_failed=0,
            preemptions=0,
            extract_share=0.0,
            extract_share_limit=0.6,
            extract_exhausted=False,
            engine_restarts=0,
        )
