"""llama.cpp's server with two slots, and mlx_lm's, each started once and asked through a `RemoteRunner`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from data.clock import SystemClock
from data.inference.remote.runner import RemoteRunner
from domain.entities.models import InstalledModel, RemoteModel
from tests.data.inference.engines import Rig
from tests.data.inference.remote.servers import RealServer

KINDS = ("llama.cpp", "mlx")


@pytest.fixture(scope="session")
def server(smollm2: InstalledModel) -> Iterator[Callable[[str], RealServer]]:
    """Starts the server of a kind once."""
    running: dict[str, RealServer] = {}

    def get(kind: str) -> RealServer:
        if kind not in running:
            running[kind] = real_server(kind, smollm2)
            running[kind].start()
        return running[kind]

    yield get
    for one in running.values():
        one.__exit__()


def real_server(kind: str, model: InstalledModel, *, slots: int = 2, port: int | None = None) -> RealServer:
    """Not yet started."""
    path = model.gguf_path if kind == "llama.cpp" else model.mlx_path
    assert path is not None
    return RealServer(kind, path.resolve(), slots=slots, port=port)


def remote_rig(
    *servers: RealServer, jobs: int = 1, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Rig:
    urls = tuple(server.url for server in servers)
    remote = RemoteModel(urls=urls, model=str(servers[0].model), jobs=jobs)
    runner = RemoteRunner("one", remote, SystemClock(), sleep=sleep)
    return Rig("remote", runner, slow=servers[0].kind == "mlx")


@pytest.fixture(scope="session")
def rigs(server: Callable[[str], RealServer]) -> Iterator[Callable[[str], Rig]]:
    made: dict[str, Rig] = {}

    def get(kind: str) -> Rig:
        if kind not in made:
            made[kind] = remote_rig(server(kind))
        return made[kind]

    yield get
    for rig in made.values():
        rig.close()


@pytest.fixture
def llama(rigs: Callable[[str], Rig]) -> Rig:
    return rigs("llama.cpp")


@pytest.fixture
def mlx(rigs: Callable[[str], Rig]) -> Rig:
    return rigs("mlx")
