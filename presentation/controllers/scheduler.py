"""The scheduler, watched and steered."""

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import SchedulerSnapshot
from domain.usecases.scheduler import (
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
    ) -> None:
        self._set_foreground = set_foreground
        self._switch_model = switch_model
        self._snapshot = snapshot

    def look_at(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        """The user opened a page of this kind, or left it (`None`)."""
        self._set_foreground(kind, subject)

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        """Returns when the model is resident."""
        await self._switch_model(model, force=force)

    def snapshot(self) -> SchedulerSnapshot:
        """The state at this moment."""
        return self._snapshot()
