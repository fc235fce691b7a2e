"""A scheduler on a fake engine, used at home or through a real server on a real port."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from data.clock import SystemClock
from data.inference.fake import FakeRunner
from data.presence import ServerAddress
from data.remote_app.scheduler import RemoteScheduler
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from data.scheduling.history import TraceHistory
from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.repositories.scheduler_coordinator import SchedulerCoordinator
from domain.usecases.scheduler import (
    FollowSchedulerUseCase,
    GetSchedulerSnapshotUseCase,
    SetForegroundKindUseCase,
    SubmitJobUseCase,
    SwitchModelUseCase,
)
from presentation.controllers.peers import PeersController
from presentation.server.guard import Guard
from presentation.server.internal import build_internal_router
from presentation.server.listen import bound, serve
from presentation.server.options import ServerOptions
from tests.fakes import MemoryStore

SECRET = "s" * 43


class Desk:
    """The engine goes on boundary by boundary; `scheduler` is what a caller has of it."""

    def __init__(self, config: SchedulerConfig | None = None, *, stepped: bool = True) -> None:
        self.runner = FakeRunner(("X", "Y"), stepped=stepped, answer_tokens=6)
        self.store = MemoryStore("X", "Y", "absent")
        self.dispatcher = Dispatcher(self.runner, self.store, SystemClock(), config)
        self.scheduler: SchedulerCoordinator = self.dispatcher
        self.history = TraceHistory(self.dispatcher, SystemClock())
        self.set_foreground = SetForegroundKindUseCase(self.dispatcher)
        self.stop = asyncio.Event()
        self.address: ServerAddress | None = None

    @property
    def remote(self) -> RemoteScheduler:
        assert isinstance(self.scheduler, RemoteScheduler)
        return self.scheduler

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(5_000):
            if condition():
                return
            await asyncio.sleep(0.002)
        raise AssertionError(f"it never came to that; the engine was asked {list(self.runner.calls)}")

    async def running(self, kind: LlmTaskKind) -> None:
        await self.until(lambda: (self.runner.running or "").startswith(f"{kind}-"))

    async def waiting(self, jobs: int) -> None:
        await self.until(lambda: sum(len(tier) for tier in self.dispatcher.snapshot().tiers.values()) == jobs)

    def app(self) -> FastAPI:
        peers = PeersController(
            SubmitJobUseCase(self.dispatcher),
            self.set_foreground,
            SwitchModelUseCase(self.dispatcher),
            GetSchedulerSnapshotUseCase(self.dispatcher),
            FollowSchedulerUseCase(self.history),
        )
        app = FastAPI()
        app.include_router(build_internal_router(peers))
        return app


def request(
    kind: LlmTaskKind, text: str = "say something kind", model: str = "X", **more: object
) -> GenerationRequest:
    return GenerationRequest.model_validate(
        {"kind": kind, "flow": "f", "model": model, "prompt": text, **more}
    )


async def no_key(key: str) -> bool:
    return False


@asynccontextmanager
async def server(desk: Desk, folder: Path) -> AsyncIterator[asyncio.Task[None]]:
    with bound("127.0.0.1", 0) as listener:
        port: int = listener.getsockname()[1]
        options = ServerOptions("127.0.0.1", port, SECRET, SECRET, folder, folder / "server.log")
        app = desk.app()
        app.add_middleware(Guard, options=options, key_fits=no_key)
        ready = asyncio.Event()
        serving = asyncio.create_task(serve(app, listener, options, desk.stop, ready.set))
        await ready.wait()
        desk.address = ServerAddress(options.url, 1, SECRET)
        try:
            yield serving
        finally:
            desk.stop.set()
            await serving


def play(
    where: str, folder: Path, scene: Callable[[Desk], Awaitable[None]], config: SchedulerConfig | None = None
) -> None:
    """`where` is `here` or `server`."""

    async def main() -> None:
        desk = Desk(config)
        async with desk.dispatcher:
            if where == "here":
                await asyncio.wait_for(scene(desk), 60)
                return
            async with server(desk, folder):
                assert desk.address is not None
                async with RemoteScheduler(desk.address, lambda: None, desk.store, SystemClock()) as remote:
                    desk.scheduler = remote
                    await asyncio.wait_for(scene(desk), 60)

    asyncio.run(main())
