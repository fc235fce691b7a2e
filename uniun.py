"""Composition root: what is built from what, who closes it, and the way in.

Imports are inside the functions on purpose: `uniun --help` must not wait for what only `uniun chat` needs.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from presentation.cli.app import build_app
from presentation.cli.openers import Controllers, Openers
from presentation.cli.run import run

if TYPE_CHECKING:
    from dependency_injector.containers import DeclarativeContainer

    from data.clock import Clock
    from data.settings import Settings
    from domain.repositories.embedder import Embedder
    from domain.usecases.health import DiagnoseUseCase
    from domain.usecases.scheduler import SimulateUseCase
    from presentation.controllers.demo import DemoController
    from presentation.controllers.models import ModelsController


def build_container(settings: Settings) -> DeclarativeContainer:
    """The one container: flat, lazy, and only ever seen in this file."""
    from dependency_injector import containers, providers

    from data.clock import SystemClock
    from data.demo.play import EngineDemo
    from data.health import MachineHealth
    from data.inference.supervisor import EngineRunner
    from data.models.store import FileModelStore
    from data.scheduling.dispatcher import Dispatcher
    from domain.usecases import demo, health, llm, models, scheduler
    from presentation.controllers.ask import AskController
    from presentation.controllers.chat import ChatController
    from presentation.controllers.demo import DemoController
    from presentation.controllers.models import ModelsController
    from presentation.controllers.scheduler import SchedulerController

    class Container(containers.DeclarativeContainer):
        clock = providers.Singleton(SystemClock)
        store = providers.Singleton(FileModelStore, settings.data_dir, clock)
        runner = providers.Singleton(EngineRunner, store, settings.engine, clock)
        dispatcher = providers.Singleton(Dispatcher, runner, store, clock, settings.scheduler)
        embedder = providers.Singleton(_build_embedder, settings.data_dir, clock)
        machine = providers.Singleton(
            MachineHealth,
            store,
            runner,
            {"data": settings.data_dir, "log": settings.log_dir},
            clock,
        )

        # A runner of its own for each policy: nothing is carried over from one to the next.
        engine_demo = providers.Singleton(
            EngineDemo,
            providers.Factory(EngineRunner, store, settings.engine, clock).provider,
            store,
            clock,
            settings.scheduler,
        )

        send_chat = providers.Factory(llm.SendChatStreamUseCase, dispatcher, store)
        generate = providers.Factory(llm.GenerateOneShotUseCase, dispatcher, store)
        set_foreground = providers.Factory(scheduler.SetForegroundKindUseCase, dispatcher)
        switch_model = providers.Factory(scheduler.SwitchModelUseCase, dispatcher)
        snapshot = providers.Factory(scheduler.GetSchedulerSnapshotUseCase, dispatcher)
        list_models = providers.Factory(models.ListModelsUseCase, store)
        pull_model = providers.Factory(models.PullModelUseCase, store)
        ensure_model = providers.Factory(models.EnsureModelUseCase, store)
        use_model = providers.Factory(models.UseModelUseCase, store)
        remove_model = providers.Factory(models.RemoveModelUseCase, store)
        register_model = providers.Factory(models.RegisterModelUseCase, store)
        list_processes = providers.Factory(health.ListEngineProcessesUseCase, machine)
        diagnose = providers.Factory(health.DiagnoseUseCase, machine)
        play_demo = providers.Factory(demo.PlayDemoUseCase, engine_demo)

        chat = providers.Factory(ChatController, send_chat, set_foreground)
        ask = providers.Factory(AskController, generate)
        scheduling = providers.Factory(SchedulerController, set_foreground, switch_model, snapshot)
        models_controller = providers.Factory(
            ModelsController,
            list_models,
            pull_model,
            ensure_model,
            use_model,
            remove_model,
            register_model,
            list_processes,
        )
        demo_controller = providers.Factory(DemoController, play_demo)

    return Container()


def _build_embedder(data_dir: Path, clock: Clock) -> Embedder:
    """The lane beside the scheduler. Its numerics are imported when it is first wanted, not with the container."""
    from data.embedding.cores import lane_width, performance_cores
    from data.embedding.queue import EmbeddingQueue
    from data.embedding.service import EmbeddingService
    from data.embedding.weights import EmbedderWeights

    return EmbeddingService(EmbedderWeights(data_dir), EmbeddingQueue(lane_width(performance_cores())), clock)


def _container() -> DeclarativeContainer:
    from data.settings import load_settings

    return build_container(load_settings())


@asynccontextmanager
async def open_controllers() -> AsyncIterator[Controllers]:
    """A running scheduler; leaving stops what runs and ends the engine process."""
    container = _container()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(container.dispatcher())
        yield Controllers(
            chat=lambda model, system: container.chat(model=model, system=system),
            ask=container.ask(),
            models=container.models_controller(),
            scheduler=container.scheduling(),
        )


def _open_models() -> ModelsController:
    controller: ModelsController = _container().models_controller()
    return controller


def _demo() -> DemoController:
    controller: DemoController = _container().demo_controller()
    return controller


def _diagnose() -> DiagnoseUseCase:
    use_case: DiagnoseUseCase = _container().diagnose()
    return use_case


def _simulate() -> SimulateUseCase:
    """Without the container: a simulation needs nothing else and should answer at once."""
    from data.scheduling.simulation import ScenarioSimulator
    from domain.usecases.scheduler import SimulateUseCase

    return SimulateUseCase(ScenarioSimulator())


def _log_file() -> Path:
    from data.settings import load_settings

    return load_settings().log_dir / "last-error.txt"


def _version() -> str:
    from importlib.metadata import version

    return version("uniun")


def main() -> None:
    """The `uniun` command."""
    app = build_app(
        Openers(
            controllers=open_controllers,
            models=_open_models,
            simulate=_simulate,
            demo=_demo,
            diagnose=_diagnose,
            version=_version,
        )
    )
    sys.exit(run(app, sys.argv[1:], _log_file))


if __name__ == "__main__":
    main()
