"""A real server process with a data folder of its own, and a real browser in front of it.

`server` is shared by the tests of a module; a module that needs notes or the real model makes its own:

    @pytest.fixture(scope="module")
    def server(start: Start) -> Server:
        return start(seed=my_notes, model=True)
"""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from data.settings import Settings
from tests.conftest import TEST_STORE
from uniun import build_container

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(__file__).parent / "program.py"
START_S = 180
PATIENCE_MS = 120_000
"""For a machine that does much else at the same time."""
expect.set_options(timeout=PATIENCE_MS)
Seed = Callable[[DeclarativeContainer], Awaitable[None]]
"""Fills the database before the server starts."""
DESK = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)


@dataclass
class Server:
    """One process; `restart` keeps port and data."""

    data_dir: Path
    port: int
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.data_dir / "server.log").read_text()

    def start(self) -> None:
        with (self.data_dir / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        transport = httpx.HTTPTransport(retries=0)
        with httpx.Client(transport=transport) as client:
            for _ in range(START_S * 10):
                try:
                    client.get(self.url + "/assets/icon.svg", timeout=5)
                    return
                except httpx.TransportError:
                    assert self.process.poll() is None, self.log
                    try:
                        self.process.wait(timeout=0.1)
                    except subprocess.TimeoutExpired:
                        continue
        raise AssertionError(f"The server does not answer.\n{self.log}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(timeout=PATIENCE_MS / 1000)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.stop(how)
        self.start()


Start = Callable[..., Server]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """`start(seed=…, model=…, tokens_per_s=…)` gives a running server; all are stopped at the end of the module.
    Further words are settings, as `scheduler__max_queued=3`.

    Without `model` the engine says what it is told (see program.py); with it the default model answers.
    """
    servers: list[Server] = []

    def begin(
        *, seed: Seed | None = None, model: bool = False, tokens_per_s: float = 200.0, **settings: object
    ) -> Server:
        data_dir = tmp_path_factory.mktemp("data")
        for weights in ("models", "embedders"):
            (TEST_STORE / weights).mkdir(parents=True, exist_ok=True)
            (data_dir / weights).symlink_to(TEST_STORE / weights)
        if seed is not None:
            # The browser's own loop runs in this thread.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, _fill(data_dir, seed)).result()
        port = _free_port()
        command = [sys.executable, str(PROGRAM), str(port), "model" if model else str(tokens_per_s)]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "UNIUN_DATA_DIR": str(data_dir),
            "UNIUN_LOG_DIR": str(data_dir / "log"),
            **{f"UNIUN_{name.upper()}": str(value) for name, value in settings.items()},
        }
        environment.pop("PYTEST_CURRENT_TEST", None)
        server = Server(data_dir, port, command, environment=environment)
        servers.append(server)
        server.start()
        return server

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless. Of one module: while it is open, nothing else in this thread can run a loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Desk:
    """A browser profile and what its pages complained about."""

    context: BrowserContext
    base: str
    complaints: list[str] = field(default_factory=list)
    """Errors in a console, uncaught exceptions, and requests to anywhere else."""

    def open(self, path: str = "/") -> Page:
        """A new tab."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: self._watch(request.url))
        page.goto(self.base + path)
        page.wait_for_function("window.did_handshake === true")
        return page

    def _watch(self, url: str) -> None:
        if not url.startswith((self.base, self.base.replace("http", "ws"), "data:", "blob:")):
            self.complaints.append(f"asked for {url}")


def desk_before(browser: Browser, server: Server) -> Iterator[Desk]:
    """Fails the test if a page complained of anything."""
    context = browser.new_context(viewport=DESK, base_url=server.url)
    context.set_default_timeout(PATIENCE_MS)
    desk = Desk(context, server.url)
    yield desk
    context.close()
    assert desk.complaints == []


@pytest.fixture
def desk(browser: Browser, server: Server) -> Iterator[Desk]:
    """For tests with several tabs."""
    yield from desk_before(browser, server)


@pytest.fixture
def page(desk: Desk) -> Page:
    """One tab, at the first page."""
    return desk.open("/")


async def _fill(data_dir: Path, seed: Seed) -> None:
    container = build_container(Settings(data_dir=data_dir, log_dir=data_dir / "log"))
    try:
        await seed(container)
    finally:
        await container.database().aclose()


def _free_port() -> int:
    """None of those that the system gives to outgoing connections: a browser that tries to reach a server that is away
    could be given its port."""
    for port in random.SystemRandom().sample(range(18_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
