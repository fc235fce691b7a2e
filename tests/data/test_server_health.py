"""A server in a process of its own, looked at from outside."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.presence import Presence
from data.server_health import examine_server
from domain.entities.health import Finding

ROOT = Path(__file__).resolve().parents[2]
SERVE = """
import asyncio, sys
from pathlib import Path
from data.presence import Presence

async def answer(reader, writer):
    path = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1].decode()
    status = {"/internal/snapshot": "200 OK", "/health": sys.argv[2]}[path]
    if status:
        writer.write(f"HTTP/1.1 {status}\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{{}}".encode())
        await writer.drain()
        writer.close()

async def serve():
    async with Presence(Path(sys.argv[1])).server() as seat:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        if sys.argv[2] != "opening":
            seat.announce("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1])
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """Its process; the parameter is how it answers `/health`."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path), request.param], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def look(folder: Path, **limits: float) -> Finding:
    return asyncio.run(examine_server(Presence(folder), **limits))


def test_without_a_server_there_is_nothing_to_mend(tmp_path: Path) -> None:
    found = look(tmp_path)
    assert (found.state, found.mend) == ("ok", "")


@pytest.mark.parametrize("server", ["200 OK"], indirect=True)
def test_a_server_that_was_stopped_is_found_and_goes_on(tmp_path: Path, server: int) -> None:
    assert look(tmp_path).state == "ok"
    os.kill(server, signal.SIGSTOP)
    os.waitpid(server, os.WUNTRACED)
    found = look(tmp_path, answer_s=0.1)
    assert found.state == "fail"
    assert f"process {server}) was stopped" in found.text
    assert f"kill -CONT {server}" in found.mend
    os.kill(server, signal.SIGCONT)
    assert look(tmp_path).state == "ok"


@pytest.mark.parametrize("server", ["503 Service Unavailable", ""], indirect=True)
def test_an_engine_without_a_sign_of_life_is_told(tmp_path: Path, server: int) -> None:
    found = look(tmp_path, engine_s=0.1)
    assert found.state == "warn"
    assert "its engine gives no sign of life" in found.text
    assert f"kill {server}" in found.mend


@pytest.mark.parametrize("server", ["opening"], indirect=True)
def test_a_server_that_never_says_where_it_is_is_told(tmp_path: Path, server: int) -> None:
    found = look(tmp_path)
    assert found.state == "warn"
    assert "opening or closing" in found.text


@pytest.mark.parametrize("server", ["200 OK"], indirect=True)
def test_one_that_hangs_is_to_be_ended(tmp_path: Path, server: int) -> None:
    found = look(tmp_path, answer_s=0)
    assert found.state == "fail"
    assert "does not answer" in found.text
    assert f"kill -9 {server}" in found.mend


def test_an_address_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    async def scenario() -> Finding:
        async with Presence(tmp_path).server():
            (tmp_path / "server.lock").write_text("{}")
            return await examine_server(Presence(tmp_path))

    found = asyncio.run(scenario())
    assert found.state == "fail"
    assert "another version" in found.text
