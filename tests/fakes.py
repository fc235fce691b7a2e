"""Stand-ins for the ports, for tests of use cases, controllers and the command line."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from domain.entities.demo import DemoEvent, DemoPolicy, DemoReport
from domain.entities.health import EngineProcess, Finding
from domain.entities.llm import (
    Finished,
    GenerationEvent,
    GenerationRequest,
    GenerationResult,
    LlmTaskKind,
    Sampling,
    TextDelta,
    Usage,
)
from domain.entities.models import (
    CatalogueEntry,
    InstalledModel,
    Memory,
    PullProgress,
    RemoteModel,
    ServerState,
)
from domain.entities.scheduler import SchedulerSnapshot
from domain.entities.simulation import SimulationReport
from domain.errors import EngineError, JobCancelled, ScenarioError, ServerRuns, UnknownModel
from domain.usecases.ask import AskNotesUseCase
from domain.usecases.demo import PlayDemoUseCase
from domain.usecases.health import DiagnoseUseCase, ListEngineProcessesUseCase
from domain.usecases.llm import GenerateOneShotUseCase
from domain.usecases.models import (
    EnsureModelUseCase,
    ListModelsUseCase,
    MeasureMemoryUseCase,
    ProposeModelsUseCase,
    PullModelUseCase,
    RegisterModelUseCase,
    RemoveModelUseCase,
    UseModelUseCase,
)
from domain.usecases.remote_models import AddRemoteModelUseCase
from domain.usecases.scheduler import (
    FollowSchedulerUseCase,
    GetSchedulerSnapshotUseCase,
    SetForegroundKindUseCase,
    SimulateUseCase,
    SubmitJobUseCase,
    SwitchModelUseCase,
)
from presentation.cli.openers import Library, Openers, Place
from presentation.cli.top import no_names
from presentation.controllers.ask import AskController
from presentation.controllers.chat import ChatController
from presentation.controllers.composer_chat import ComposerChatController
from presentation.controllers.demo import DemoController
from presentation.controllers.models import ModelsController
from presentation.controllers.peers import PeersController
from presentation.controllers.scheduler import SchedulerController
from presentation.faces import Controllers
from tests.memory.api_keys import api_controller
from tests.memory.background import fake_background, quiet_process
from tests.memory.chat import MemoryChat, knowledge_controller
from tests.memory.faces import MemoryFaces
from tests.memory.gana_faces import agents_over
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary
from tests.memory.preferences import fake_settings
from tests.memory.scheduler import FixedHistory

HOLD = None
"""In a script: wait here until the job is cancelled."""
Step = GenerationEvent | Exception | None


def finished(text: str, *, reason: str = "stop") -> Finished:
    usage = Usage(prompt_tokens=3, completion_tokens=len(text.split()))
    return Finished(
        result=GenerationResult.model_validate(
            {
                "text": text,
                "finish_reason": reason,
                "usage": usage,
                "wait_s": 0,
                "first_token_s": 0.1,
                "service_s": 0.5,
                "preemptions": 0,
            }
        )
    )


def answer(*pieces: str, reason: str = "stop") -> list[Step]:
    """The script of a job that streams these pieces and finishes."""
    deltas = [TextDelta(text=piece, tokens=at + 1) for at, piece in enumerate(pieces)]
    return [*deltas, finished("".join(pieces), reason=reason)]


class ScriptedJob:
    def __init__(self, name: str, script: Sequence[Step]) -> None:
        self.id = name
        self.cancelled = asyncio.Event()
        self._script = script

    async def events(self) -> AsyncIterator[GenerationEvent]:
        for step in self._script:
            if step is HOLD:
                await self.cancelled.wait()
            if self.cancelled.is_set():
                raise JobCancelled("The job was cancelled.")
            if isinstance(step, Exception):
                raise step
            assert step is not None
            yield step

    async def result(self) -> GenerationResult:
        async for event in self.events():
            if isinstance(event, Finished):
                return event.result
        raise AssertionError("the script has no end")

    def cancel(self) -> None:
        self.cancelled.set()


class ScriptedCoordinator:
    """Plays one script a job, in the order of submission; the last one again and again."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = scripts or (answer("Hello", " there."),)
        self.requests: list[GenerationRequest] = []
        self.jobs: list[ScriptedJob] = []
        self.surfaces: list[tuple[LlmTaskKind | None, str | None]] = []

    def submit(self, request: GenerationRequest) -> ScriptedJob:
        at = len(self.requests)
        self.requests.append(request)
        job = ScriptedJob(f"job-{at}", self.scripts[min(at, len(self.scripts) - 1)])
        self.jobs.append(job)
        return job

    def set_foreground(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        self.surfaces.append((kind, subject))

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        raise UnknownModel(f"There is no model {model}.")

    def snapshot(self) -> SchedulerSnapshot:
        raise AssertionError("not used here")


ENTRY = CatalogueEntry(
    name="tiny",
    title="Tiny",
    source="a wheel",
    licence="Apache-2.0",
    download_bytes=100_000_000,
    memory_bytes=300_000_000,
    context_tokens=2048,
    good_for="trying things out",
)


class MemoryStore:
    """Models that exist in name only; `tiny` is the default and can be pulled."""

    def __init__(self, *installed: str) -> None:
        self.names = list(installed)
        self.default = "tiny"
        self.pulled: list[str] = []
        self.offered = [ENTRY]
        self.sampling: Sampling | None = None

    def limit_context(self, tokens: int) -> None:
        """Models in name only have none."""

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        return tuple(self.offered)

    def installed(self) -> tuple[InstalledModel, ...]:
        return tuple(self.get(name) for name in sorted(self.names))

    def get(self, name: str) -> InstalledModel:
        if name not in self.names:
            raise UnknownModel(f"There is no model {name}. `uniun models list` shows what there is.")
        return InstalledModel(
            name=name,
            source="memory",
            size_bytes=1_500_000,
            context_tokens=2048,
            gguf_path=Path("/tiny.gguf"),
            sampling=self.sampling,
        )

    def default_name(self) -> str:
        return self.default

    async def pull(self, name: str, progress: Callable[[PullProgress], None]) -> InstalledModel:
        if name != "tiny":
            raise UnknownModel(f"There is no model {name}.")
        self.pulled.append(name)
        progress(PullProgress(stage="download", done_bytes=0, total_bytes=100))
        progress(PullProgress(stage="download", done_bytes=100, total_bytes=100))
        progress(PullProgress(stage="done", done_bytes=100, total_bytes=100))
        self.names.append(name)
        return self.get(name)

    def register(self, name: str, path: Path) -> InstalledModel:
        self.names.append(name)
        return self.get(name)

    def register_remote(self, name: str, remote: RemoteModel, context_tokens: int | None) -> InstalledModel:
        return self.register(name, Path("/"))

    def use(self, name: str) -> InstalledModel:
        self.default = self.get(name).name
        return self.get(name)

    def remove(self, name: str) -> int:
        self.get(name)
        self.names.remove(name)
        return 1_500_000


class SilentServers:
    """None of them answers."""

    async def states(self, remote: RemoteModel) -> tuple[ServerState, ...]:
        return tuple(ServerState(url=url, error=f"{url} cannot be reached.") for url in remote.urls)


class FixedHealth:
    def __init__(self, *findings: Finding, processes: tuple[EngineProcess, ...] = ()) -> None:
        self._findings = findings
        self._processes = processes

    async def findings(self) -> AsyncIterator[Finding]:
        for finding in self._findings:
            yield finding

    def engine_processes(self) -> tuple[EngineProcess, ...]:
        return self._processes

    def memory(self) -> Memory:
        return Memory(total_bytes=16_000_000_000, free_bytes=11_000_000_000)


class FixedHub:
    """Implements `ModelHub`."""

    def __init__(self, *, there: bool = False) -> None:
        self.there = there

    async def answers(self) -> bool:
        return self.there


class FixedSimulator:
    """Refuses a text that contains `malformed`, else gives the same report for all."""

    def __init__(self, *trace: dict[str, object]) -> None:
        self._trace = trace

    def simulate(self, text: str, filename: str) -> SimulationReport:
        if "malformed" in text:
            raise ScenarioError(f"{filename}, line 1: no events.")
        return SimulationReport(
            trace=self._trace, json_lines=tuple(str(record["event"]) for record in self._trace)
        )


class ScriptedDemo:
    """Tells the events and returns the report; fails when there is none."""

    def __init__(self, *events: DemoEvent, report: DemoReport | None = None) -> None:
        self.asked: list[tuple[str, tuple[DemoPolicy, ...], float]] = []
        self._events = events
        self._report = report

    async def play(
        self, model: str, policies: Sequence[DemoPolicy], window_s: float, watch: Callable[[DemoEvent], None]
    ) -> DemoReport:
        self.asked.append((model, tuple(policies), window_s))
        for event in self._events:
            watch(event)
        if self._report is None:
            raise EngineError("The engine failed. See: uniun doctor")
        return self._report


def fake_openers(
    coordinator: ScriptedCoordinator | None = None,
    store: MemoryStore | None = None,
    health: FixedHealth | None = None,
    simulator: FixedSimulator | None = None,
    demo: ScriptedDemo | None = None,
    library: MemoryLibrary | None = None,
    faces: MemoryFaces | None = None,
) -> Openers:
    """The command line's needs, over fakes."""
    coordinator = coordinator or ScriptedCoordinator()
    store = store or MemoryStore("tiny")
    health = health or FixedHealth()
    models = ModelsController(
        ListModelsUseCase(store),
        PullModelUseCase(store),
        EnsureModelUseCase(store),
        UseModelUseCase(store),
        RemoveModelUseCase(store),
        RegisterModelUseCase(store),
        ListEngineProcessesUseCase(health),
        MeasureMemoryUseCase(health),
        ProposeModelsUseCase(store, FixedHub(), health),
        AddRemoteModelUseCase(store, SilentServers()),
    )
    foreground = SetForegroundKindUseCase(coordinator)
    chat = MemoryChat(coordinator, store, library)
    generate = GenerateOneShotUseCase(coordinator, store)
    knowledge = knowledge_controller(coordinator, store, chat.library)
    faces = faces or MemoryFaces(chat.library, knowledge)
    agents = faces.agents = agents_over(
        coordinator, store, chat.library, faces.cards, faces.ganas, faces.identities
    )
    opened_library = faces.open()
    controllers = Controllers(
        chat=lambda model, system: ChatController(chat.use_cases, model=model, system=system),
        composer_chat=lambda note_id, model: ComposerChatController(
            chat.use_cases, note_id=note_id, model=model
        ),
        ask=AskController(generate, AskNotesUseCase(generate, chat.retrieve, store, chat.library.manases)),
        models=models,
        scheduler=SchedulerController(
            foreground,
            SwitchModelUseCase(coordinator),
            GetSchedulerSnapshotUseCase(coordinator),
            FollowSchedulerUseCase(FixedHistory()),
        ),
        notes=opened_library.notes,
        manases=opened_library.manases,
        knowledge=knowledge,
        nataraj=agents.nataraj_controller(),
        ganas=agents.gana_controller(),
        archive=opened_library.archive,
        background=lambda: fake_background(faces.ganas),
        demo=lambda: DemoController(PlayDemoUseCase(demo or ScriptedDemo())),
        diagnose=lambda: DiagnoseUseCase(health),
        settings=fake_settings(),
        api=api_controller(coordinator, store, chat.library.embedder, CountingIdentities(), faces.api_keys),
        api_keys=opened_library.api_keys,
        version=lambda: "1.2.3",
        peers=PeersController(
            SubmitJobUseCase(coordinator),
            foreground,
            SwitchModelUseCase(coordinator),
            GetSchedulerSnapshotUseCase(coordinator),
            FollowSchedulerUseCase(FixedHistory()),
        ),
    )

    @asynccontextmanager
    async def opened() -> AsyncIterator[Controllers]:
        yield controllers

    def open_controllers() -> AbstractAsyncContextManager[Controllers]:
        return opened()

    @asynccontextmanager
    async def no_server(host: str | None, port: int | None) -> AsyncIterator[Place]:
        raise ServerRuns("http://127.0.0.1:8118")
        yield  # a generator

    @asynccontextmanager
    async def no_servers_scheduler() -> AsyncIterator[SchedulerController | None]:
        yield None

    @asynccontextmanager
    async def open_library() -> AsyncIterator[Library]:
        yield faces.open()

    return Openers(
        controllers=open_controllers,
        app=open_controllers,
        server=no_server,
        servers_scheduler=no_servers_scheduler,
        flow_names=no_names,
        library=open_library,
        background=controllers.background,
        background_process=quiet_process,
        models=lambda: models,
        simulate=lambda: SimulateUseCase(simulator or FixedSimulator()),
        demo=controllers.demo,
        diagnose=controllers.diagnose,
        version=controllers.version,
    )
