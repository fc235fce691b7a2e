"""The API on a real socket, over the real scheduler and an engine in memory, for tests that need speed or order."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
from fastapi import FastAPI
from openai import AsyncOpenAI

from data.clock import Clock, SystemClock
from data.identity import RandomIdentities
from data.inference.fake import FakeRunner
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from data.scheduling.history import TraceHistory
from domain.repositories.identity import Identities
from domain.repositories.inference_runner import InferenceRunner
from domain.usecases.scheduler import (
    FollowSchedulerUseCase,
    GetSchedulerSnapshotUseCase,
    SetForegroundKindUseCase,
    SwitchModelUseCase,
)
from presentation.api.routes import build_router
from presentation.controllers.scheduler import SchedulerController
from presentation.faces import Controllers
from presentation.server.closing import Closing
from presentation.server.guard import Guard
from presentation.server.headers import Headers
from presentation.server.limits import BodyLimit
from presentation.server.listen import bound, serve
from presentation.server.options import ServerOptions
from tests.fakes import MemoryStore
from tests.memory.api_keys import FixedProbe, MemoryApiKeys, api_controller
from tests.memory.embedder import WordEmbedder


@dataclass
class Api:
    """A served API, and what is behind it."""

    app: FastAPI
    host: str
    port: int
    runner: Any
    dispatcher: Dispatcher
    keys: MemoryApiKeys
    probe: FixedProbe
    log_file: Path

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def openai(self, key: str = "none", **headers: str) -> AsyncOpenAI:
        return AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=120, default_headers=headers
        )

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=120, trust_env=False)

    async def raw(self, head: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A request in one's own bytes; `{host}` and `{length}` are filled in."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        text = head.replace("{host}", f"{self.host}:{self.port}").replace("{length}", str(len(body)))
        writer.write(text.encode("latin-1") + b"\r\n\r\n" + body)
        return reader, writer

    async def post(
        self, path: str, body: dict[str, Any]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The same as a well-formed POST; the connection stays open."""
        return await self.raw(
            f"POST {path} HTTP/1.1\r\nHost: {{host}}\r\nContent-Type: application/json\r\nContent-Length: {{length}}",
            json.dumps(body).encode(),
        )


def api_app(
    dispatcher: Dispatcher,
    store: MemoryStore,
    options: ServerOptions,
    *,
    keys: MemoryApiKeys,
    probe: FixedProbe,
    identities: Identities,
) -> FastAPI:
    """As the program serves it, without pages."""
    scheduler = SchedulerController(
        SetForegroundKindUseCase(dispatcher),
        SwitchModelUseCase(dispatcher),
        GetSchedulerSnapshotUseCase(dispatcher),
        FollowSchedulerUseCase(TraceHistory(dispatcher, SystemClock())),
    )
    api = api_controller(dispatcher, store, WordEmbedder(), identities, keys, probe)
    faces = cast(Controllers, SimpleNamespace(api=api, scheduler=scheduler, version=lambda: "1.2.3"))
    app = FastAPI(title="UNIUN", version="1.2.3", docs_url=None, redoc_url=None)
    app.include_router(build_router(faces))
    app.add_middleware(BodyLimit, max_bytes=options.max_body_bytes)
    app.add_middleware(Guard, options=options, key_fits=api.key_fits)
    app.add_middleware(Closing)
    app.add_middleware(Headers)
    return app


@asynccontextmanager
async def served(
    folder: Path,
    runner: InferenceRunner | None = None,
    *,
    models: tuple[str, ...] = ("tiny",),
    config: SchedulerConfig | None = None,
    identities: Identities | None = None,
    token: str | None = None,
    max_connections: int = 1000,
    clock: Clock | None = None,
) -> AsyncIterator[Api]:
    """Answers on a free port of 127.0.0.1 while entered. `clock` is what the scheduler measures turns with."""
    clock = clock or SystemClock()
    store = MemoryStore(*models)
    runner = runner or FakeRunner(models, answer_tokens=8)
    keys, probe = MemoryApiKeys(), FixedProbe()
    with bound("127.0.0.1", 0) as listener:
        options = ServerOptions(
            host="127.0.0.1",
            port=listener.getsockname()[1],
            secret="secret",
            cookie_secret="secret",
            state_dir=folder,
            log_file=folder / "server.log",
            token=token,
            max_connections=max_connections,
        )
        async with Dispatcher(runner, store, clock, config) as dispatcher:
            app = api_app(
                dispatcher,
                store,
                options,
                keys=keys,
                probe=probe,
                identities=identities or RandomIdentities(clock),
            )
            stop, ready = asyncio.Event(), asyncio.Event()
            serving = asyncio.create_task(serve(app, listener, options, stop, ready.set))
            await ready.wait()
            try:
                yield Api(app, "127.0.0.1", options.port, runner, dispatcher, keys, probe, options.log_file)
            finally:
                stop.set()
                await serving
