"""The port, and the time from the first connection to the last."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psutil
import uvicorn
from fastapi import FastAPI

from domain.errors import InvalidRequest
from presentation.server.connection import PatientProtocol
from presentation.server.log import logging_to
from presentation.server.options import ServerOptions

GRACE_S = 2
"""For answers that are on their way when the server ends; then they are cancelled."""
_FAREWELL_S = 1
"""For what was cancelled to tell its client so."""
_BACKLOG = 512
_TRIES = 20


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that is bound and not yet listening, so that a port in use is known before anything is loaded.

    Raises `InvalidRequest`.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise InvalidRequest(f"There is no address {host} on this machine: {error.strerror}.") from error
    listener = socket.socket(family, socket.SOCK_STREAM)
    with contextlib.closing(listener):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise InvalidRequest(_refusal(family, host, port, error)) from error
        yield listener


def _refusal(family: socket.AddressFamily, host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = _free_port(family, host, port)
        return (
            f"Port {port} is taken by {_holder(port)}. Choose another one, for whatever you start: "
            f"UNIUN_SERVER__PORT={other} make run, or uniun serve --port {other}"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Port {port} is for the system only. Choose one from 1024 to 65535: uniun serve --port 8118"
    return f"UNIUN cannot listen on {host}, port {port}: {error.strerror}."


def _holder(port: int) -> str:
    """Who listens there, as far as this user may know."""
    try:
        pids = {
            each.pid
            for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr[1] == port and each.pid
        }
        for pid in pids:
            process = psutil.Process(pid)
            if any(Path(word).name == "uniun" for word in process.cmdline()):
                return f"another UNIUN, process {pid}, with a data folder of its own"
            return f"the program {process.name()}, process {pid}"
    except (psutil.Error, OSError):
        pass
    return "another program"


def _free_port(family: socket.AddressFamily, host: str, taken: int) -> int:
    """The next one that is free, or 0, which takes any."""
    for port in range(taken + 1, min(taken + 1 + _TRIES, 65_536)):
        with contextlib.suppress(OSError), socket.create_server((host, port), family=family):
            return port
    return 0


async def serve(
    app: FastAPI,
    listener: socket.socket,
    options: ServerOptions,
    stop: asyncio.Event,
    ready: Callable[[], None],
) -> None:
    """Until `stop` is set; `ready` is called once connections are answered."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=options.max_connections,
        timeout_graceful_shutdown=GRACE_S,
        ws_max_size=options.max_body_bytes,
    )
    server = _Server(config, ready)
    with logging_to(options.log_file):
        running = asyncio.create_task(server.serve([listener]))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            server.should_exit = True
            await running


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:  # it ends the program without a word; what went wrong is in the log
            raise RuntimeError("the pages or the API could not be started; where is in server.log") from None
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)  # it does not wait for what it cancels
        if tasks := self.server_state.tasks:
            await asyncio.wait(tasks, timeout=_FAREWELL_S)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are for the whole program, not for the server in it."""
        yield
