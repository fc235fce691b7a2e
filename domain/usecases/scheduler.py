"""Telling the scheduler what the user looks at, asking it what it does, and trying it on a scenario."""

from collections.abc import AsyncIterator

from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.entities.scheduler import History, SchedulerChange, SchedulerMetrics, SchedulerSnapshot
from domain.entities.simulation import SimulationReport
from domain.repositories.scheduler_coordinator import JobHandle, SchedulerCoordinator
from domain.repositories.scheduler_history import SchedulerHistory
from domain.repositories.simulator import Simulator


class SubmitJobUseCase:
    """Hands a request on as it is: it was made by another process of ours."""

    def __init__(self, coordinator: SchedulerCoordinator) -> None:
        self._coordinator = coordinator

    def __call__(self, request: GenerationRequest) -> JobHandle:
        """Raises `QueueFull`, `UnknownModel`."""
        return self._coordinator.submit(request)


class SetForegroundKindUseCase:
    """Says what the user looks at now; every face calls it when a page opens or closes.

    One for all: of several viewers (this program, a command in another process) the last to say something counts, and
    when it leaves, the one before.
    """

    def __init__(self, coordinator: SchedulerCoordinator) -> None:
        self._coordinator = coordinator
        self._surfaces: dict[str, tuple[LlmTaskKind, str | None]] = {}

    def __call__(self, kind: LlmTaskKind | None, subject: str | None = None, *, viewer: str = "") -> None:
        """`subject` is one flow of the kind; the viewer looks at nothing when `kind` is none."""
        self._surfaces.pop(viewer, None)
        if kind is not None:
            self._surfaces[viewer] = (kind, subject)
        surface = next(reversed(self._surfaces.values()), (None, None))
        self._coordinator.set_foreground(*surface)


class SwitchModelUseCase:
    """Makes another model the resident one."""

    def __init__(self, coordinator: SchedulerCoordinator) -> None:
        self._coordinator = coordinator

    async def __call__(self, model: str, *, force: bool = False) -> None:
        """After the running job, or at once when forced. Raises `UnknownModel`, `ModelLoadFailed`."""
        await self._coordinator.switch_model(model, force=force)


class GetSchedulerSnapshotUseCase:
    """The queue, the running job and the reasons, at this moment."""

    def __init__(self, coordinator: SchedulerCoordinator) -> None:
        self._coordinator = coordinator

    def __call__(self) -> SchedulerSnapshot:
        """A value that does not change afterwards."""
        return self._coordinator.snapshot()


class FollowSchedulerUseCase:
    """What the scheduler did in the last minutes, what it does from now on, and its counters."""

    def __init__(self, history: SchedulerHistory) -> None:
        self._history = history

    def recent(self) -> History:
        """The runs, swaps and decisions of the last minutes."""
        return self._history.recent()

    def watch(self) -> AsyncIterator[SchedulerChange]:
        """Every record of the trace from now on; close the iterator to leave. Raises `TooManyWatchers`."""
        return self._history.watch()

    def export(self) -> tuple[str, ...]:
        """The last minutes as lines of JSON, in the format of `uniun simulate --json`."""
        return self._history.export()

    def metrics(self) -> SchedulerMetrics:
        """Counters since the start, queue lengths and shares now."""
        return self._history.metrics()


class SimulateUseCase:
    """Runs a scenario through the real policy, with a model of the engine."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def __call__(self, text: str, filename: str) -> SimulationReport:
        """Raises `ScenarioError` with the file, the line and the reason."""
        return self._simulator.simulate(text, filename)
