"""The scheduler, for other processes of the same user: a command that finds a server uses its model."""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.entities.scheduler import History, SchedulerChange, SchedulerMetrics, SchedulerSnapshot
from domain.repositories.scheduler_coordinator import JobHandle
from domain.usecases.scheduler import (
    FollowSchedulerUseCase,
    GetSchedulerSnapshotUseCase,
    SetForegroundKindUseCase,
    SubmitJobUseCase,
    SwitchModelUseCase,
)


@dataclass(frozen=True)
class PeersController:
    """What a `SchedulerCoordinator` in another process needs."""

    submit_job: SubmitJobUseCase
    set_foreground: SetForegroundKindUseCase
    switch: SwitchModelUseCase
    get_snapshot: GetSchedulerSnapshotUseCase
    follow: FollowSchedulerUseCase

    def submit(self, request: GenerationRequest) -> JobHandle:
        """Queues it as it is. Raises `QueueFull`, `UnknownModel`."""
        return self.submit_job(request)

    @contextmanager
    def looking_at(self, kind: LlmTaskKind, subject: str | None) -> Iterator[None]:
        """While entered, the user of that process looks at this."""
        viewer = uuid.uuid4().hex
        self.set_foreground(kind, subject, viewer=viewer)
        try:
            yield
        finally:
            self.set_foreground(None, viewer=viewer)

    async def switch_model(self, model: str, *, force: bool) -> None:
        """Returns when it is resident."""
        await self.switch(model, force=force)

    def snapshot(self) -> SchedulerSnapshot:
        """Now."""
        return self.get_snapshot()

    def recent(self) -> History:
        """The last minutes."""
        return self.follow.recent()

    def watch(self) -> AsyncIterator[SchedulerChange]:
        """From now on."""
        return self.follow.watch()

    def export(self) -> tuple[str, ...]:
        """The last minutes as lines of JSON."""
        return self.follow.export()

    def metrics(self) -> SchedulerMetrics:
        """Counters since the start."""
        return self.follow.metrics()
