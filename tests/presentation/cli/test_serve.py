"""`uniun serve` and `uniun` alone, where a server is open already."""

import asyncio
import gc
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

import presentation.cli.serve as serve_module
from presentation.cli.app import build_app
from presentation.cli.openers import Place
from presentation.cli.run import run
from presentation.faces import Controllers
from presentation.server.options import ServerOptions
from tests.fakes import fake_openers


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []
    monkeypatch.setattr(webbrowser, "open", urls.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return urls


def uniun(*arguments: str) -> int:
    return run(build_app(fake_openers()), arguments, lambda: Path("/nowhere"))


def test_serve_fails_and_says_where_the_other_one_is(
    shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert uniun("serve") == 1
    assert capsys.readouterr() == ("", "uniun: UNIUN is open already, at http://127.0.0.1:8118\n")
    assert shown == []


@pytest.mark.parametrize("arguments", [(), ("serve", "--open")])
def test_the_one_that_is_open_is_shown(
    arguments: tuple[str, ...], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert uniun(*arguments) == 0
    assert capsys.readouterr() == ("UNIUN is open already, at http://127.0.0.1:8118\n", "")
    assert shown == ["http://127.0.0.1:8118"]


def test_without_a_display_the_address_is_enough(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY")
    assert uniun() == 0
    assert shown == []


@pytest.mark.parametrize("wrong", [("--port", "70000"), ("--port", "x"), ("--no-such",)])
def test_what_cannot_be_typed_is_2(wrong: tuple[str, ...]) -> None:
    assert uniun("serve", *wrong) == 2


def test_the_first_signal_ends_it_in_good_order_and_the_second_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once: list[bool] = []
    monkeypatch.setattr(serve_module, "stop_at_once", lambda: at_once.append(True))
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def scenario() -> None:
        with serve_module._stopping() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait_for(stop.wait(), 10)
            assert at_once == []
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1_000):
                if at_once:
                    break
                await asyncio.sleep(0.001)
        assert at_once == [True]

    try:
        asyncio.run(scenario())
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGHUP), before, strict=True):
            signal.signal(number, handler)


def test_what_there_is_before_the_first_request_is_not_looked_through_for_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full collection over the whole program stopped every page for as long as some tokens take."""
    frozen: list[int] = []

    async def answer(*given: object) -> None:
        frozen.append(gc.get_freeze_count())

    @asynccontextmanager
    async def open_place(host: str | None, port: int | None) -> AsyncIterator[Place]:
        with socket.socket() as listener:
            options = ServerOptions("127.0.0.1", 1, "s", "c", Path("/nowhere"), Path("/nowhere"))
            yield Place(cast(Controllers, None), options, listener, lambda: None, lambda: None)

    monkeypatch.setattr("presentation.server.app.build_server", lambda *given: None)
    monkeypatch.setattr("presentation.server.listen.serve", answer)
    before = gc.get_freeze_count()
    try:
        asyncio.run(serve_module.serve(open_place, None, None, show=False))
    finally:
        gc.unfreeze()
    assert frozen[0] > before + 10_000
