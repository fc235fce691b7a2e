"""`uniun serve` as a process, without a model; and with one, what other commands do beside it."""

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from data.models.store import FileModelStore
from tests.conftest import TEST_STORE

LIMIT_S = 120


def environment(folder: Path) -> dict[str, str]:
    own = {"UNIUN_DATA_DIR": str(folder / "data"), "UNIUN_LOG_DIR": str(folder / "log")}
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {**kept, **own}


def uniun(folder: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uniun", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(folder),
    )


class Program:
    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uniun", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(folder),
        )

    @property
    def out(self) -> Any:
        return self.process.stdout

    def end(self) -> tuple[str, str]:
        return self.process.communicate(timeout=LIMIT_S)


class Served(Program):
    def __init__(self, folder: Path, *arguments: str) -> None:
        super().__init__(folder, "serve", "--port", "0", *arguments)
        first = self.out.readline()
        assert first.startswith("UNIUN is at http://"), first + self.end()[1]
        self.url = first.split()[3]

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=headers, trust_env=False, timeout=120)


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[Served]:
    server = Served(folder, *arguments)
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            server.process.kill()
        server.end()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served")) as server:
        yield server


def test_it_opens_without_a_model_and_answers_pages_and_programs(running: Served) -> None:
    page = running.get("/", accept="text/html")
    assert page.status_code == 200
    assert "'unsafe-inline'" not in page.headers["content-security-policy"].split("style-src")[0]
    assert running.get("/v1/models").status_code == 200
    assert running.get("/", host="evil.example").status_code == 403
    assert running.get("/", origin="http://evil.example").status_code == 403
    head = httpx.post(running.url + "/v1/chat/completions", content=b"x" * 11_000_000, trust_env=False)
    assert head.status_code == 413


def test_its_log_says_what_was_refused_and_nothing_of_what_was_sent(running: Served) -> None:
    running.get("/notes?q=SECRETWORD", origin="http://evil.example")
    running.get("/nothing-here?q=SECRETWORD")
    httpx.post(running.url + "/v1/chat/completions", content=b'{"SECRETWORD": ', trust_env=False)
    log = (running.folder / "log" / "server.log").read_text()
    assert "refused 403 from 127.0.0.1" in log
    assert "SECRETWORD" not in log


def test_a_websocket_of_another_site_is_refused(running: Served) -> None:
    port = int(running.url.rsplit(":", 1)[1])
    opening = (
        "GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: {origin}\r\n\r\n"
    )
    for origin, status in ((f"http://127.0.0.1:{port}", b"101"), ("http://evil.example", b"403")):
        with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
            line.sendall(opening.format(port=port, origin=origin).encode())
            assert line.recv(12).endswith(status)


def test_only_one_to_a_data_folder_and_a_second_one_says_where_the_first_is(running: Served) -> None:
    second = uniun(running.folder, "serve", "--port", "0")
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == f"uniun: UNIUN is open already, at {running.url}\n"
    alone = uniun(running.folder)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == f"UNIUN is open already, at {running.url}\n"


def test_a_port_that_another_program_has_is_named(running: Served, tmp_path: Path) -> None:
    port = running.url.rsplit(":", 1)[1]
    taken = uniun(tmp_path, "serve", "--port", port)
    assert taken.returncode == 2
    assert f"Port {port} is taken" in taken.stderr
    assert taken.stderr.count("\n") == 1


def test_its_file_is_for_its_owner_only_and_its_secret_opens_what_nothing_else_does(running: Served) -> None:
    file = running.folder / "data" / "server.lock"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said = json.loads(file.read_text())
    assert (said["url"], said["pid"]) == (running.url, running.process.pid)
    assert running.get("/internal/snapshot").status_code == 403
    snapshot = running.get("/internal/snapshot", authorization=f"Bearer {said['secret']}")
    assert snapshot.json()["running"] is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order_and_another_may_open(number: signal.Signals, tmp_path: Path) -> None:
    with served(tmp_path) as server:
        with httpx.stream("GET", server.url + "/scheduler/events", trust_env=False, timeout=120):
            server.process.send_signal(number)
            _, err = server.end()
        assert server.process.returncode == 0
        assert "stopping" in err
        assert "Traceback" not in err
        with pytest.raises(httpx.TransportError):
            server.get("/")
    with served(tmp_path) as server:
        assert server.get("/").status_code == 200


def test_a_killed_one_leaves_nothing_that_keeps_the_next_from_opening(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.process.kill()
        server.end()
        with served(tmp_path) as other:
            assert other.get("/").status_code == 200


def test_off_loopback_it_makes_a_token_and_keeps_it(tmp_path: Path) -> None:
    with served(tmp_path, "--host", "0.0.0.0") as server:
        way_in = server.out.readline().split()[-1]
        file = tmp_path / "data" / "server-token"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert way_in == f"{server.url}/?token={token}"
        assert server.get("/").status_code == 401
        with httpx.Client(follow_redirects=True, trust_env=False, timeout=120) as browser:
            assert browser.get(way_in).status_code == 200
            assert browser.get(server.url + "/").status_code == 200
    with served(tmp_path, "--host", "0.0.0.0"):
        assert file.read_text().strip() == token


# -- beside a server, with the real model


@pytest.fixture
def with_model(model_store: FileModelStore, tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for weights in ("models", "embedders"):
        (TEST_STORE / weights).mkdir(exist_ok=True)
        (tmp_path / "data" / weights).symlink_to(TEST_STORE / weights)
    return tmp_path


def answer_states(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "data" / "uniun.db") as database:
        rows = database.execute("SELECT state FROM message WHERE role = 'assistant'").fetchall()
    return [str(state) for (state,) in rows]


def counting(folder: Path) -> Program:
    """A chat in the middle of a long answer."""
    chat = Program(folder, "chat")
    assert chat.process.stdin is not None
    chat.process.stdin.write("Count to one thousand.\n")
    chat.process.stdin.flush()
    assert chat.out.read(30)
    return chat


def engines_of(pid: int) -> int:
    return len(psutil.Process(pid).children(recursive=True))


@pytest.mark.model
def test_commands_use_the_servers_model_and_the_server_may_die(with_model: Path) -> None:
    with served(with_model) as server:
        question = "What is the capital of France? One word."
        asked = uniun(with_model, "ask", question)
        assert asked.returncode == 0, asked.stderr
        assert "Paris" in asked.stdout
        engines = engines_of(server.process.pid)
        assert engines

        chat = counting(with_model)
        assert engines_of(chat.process.pid) == 0
        assert engines_of(server.process.pid) == engines
        beside = uniun(with_model, "chat", text="/help\n")  # opens and closes while the answer comes
        assert beside.returncode == 0, beside.stderr
        assert answer_states(with_model)[0] in ("streaming", "complete")
        chat.process.kill()
        chat.end()

        cut = counting(with_model)
        server.process.kill()
        _, err = cut.end()
        assert "has ended or does not answer" in err
        assert "Traceback" not in err
    shown = uniun(with_model, "chat", "--last", text="/show\n")
    assert "(failed)" in shown.stdout
    assert shown.returncode == 0, shown.stderr


@pytest.mark.model
def test_ctrl_c_ends_the_server_and_keeps_what_was_answered(with_model: Path) -> None:
    with served(with_model) as server:
        chat = counting(with_model)
        server.process.send_signal(signal.SIGINT)
        assert server.end()[1].startswith("uniun: stopping")
        assert server.process.returncode == 0
        out, err = chat.end()
        assert "Traceback" not in err
    shown = uniun(with_model, "chat", "--last", text="/show\n")
    assert out[:20].split()[0] in shown.stdout
