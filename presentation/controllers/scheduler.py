"""The scheduler, watched and steered."""

from collections.abc import AsyncIterator

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import History, SchedulerChange, SchedulerMetrics, SchedulerSnapshot
from domain.usecases.scheduler import (
    FollowSchedulerUseCase,
    GetSchedulerSnapshotUseCase,
    SetForegroundKindUseCase,
    SwitchModelUseCase,
)


class SchedulerController:
    """What a scheduler page or a live view needs."""

    def __init__(
        self,
        set_foreground: SetForegroundKindUseCase,
        switch_model: SwitchModelUseCase,
        snapshot: GetSchedulerSnapshotUseCase,
        follow: FollowSchedulerUseCase,
    ) -> None:
        self._set_foreground = set_foreground
        self._switch_model = switch_model
        self._snapshot = snapshot
        self._follow = follow

    def look_at(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        """The user opened a page of this kind, or left it (`None`)."""
        self._set_foreground(kind, subject)

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        """Returns when the model is resident."""
        await self._switch_model(model, force=force)

    def snapshot(self) -> SchedulerSnapshot:
        """The state at this moment."""
        return self._snapshot()

    def history(self) -> History:
        """The runs, swaps and decisions of the last ten minutes."""
        return self._follow.recent()

    def watch(self) -> AsyncIterator[SchedulerChange]:
        """Every record of the trace from now on, `MissedRecords` where the reader was too slow.

        Close the iterator to leave. Raises `TooManyWatchers` when it is first asked.
        """
        return self._follow.watch()

    def export_history(self) -> tuple[str, ...]:
        """The last ten minutes as lines of JSON, which `uniun simulate` reads."""
        return self._follow.export()

    def metrics(self) -> SchedulerMetrics:
        """Counters since the start, queue lengths and shares now."""
        return self._follow.metrics()
