"""`uniun serve` and `uniun` alone, where a server is open already."""

import sys
import webbrowser
from pathlib import Path

import pytest

from presentation.cli.app import build_app
from presentation.cli.run import run
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
