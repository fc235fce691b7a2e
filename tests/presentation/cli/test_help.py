"""The help of every command, as somebody reads it who has never seen the program."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.main import get_command

from presentation.cli.app import build_app
from tests.fakes import fake_openers

PROGRAM = get_command(build_app(fake_openers()))
Shown = Callable[..., str]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


EVERY = list(commands(PROGRAM))


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    def show(*command: str, columns: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        PROGRAM.main([*command, "--help"], prog_name="uniun", standalone_mode=False)
        return capsys.readouterr().out

    return show


def test_it_is_in_words_and_every_option_has_some(shown: Shown) -> None:
    assert len(EVERY) > 50
    for command in EVERY:
        text = shown(*command)
        assert not re.search(r"<\w|<=|None|_|\{|\[\]", text), text
        lines = text.splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if re.match(r"  (-|\[?[A-Z]{2,})", line):
                assert re.search(r"\S {2,}\S", line) or following.startswith(" " * 10), text


def test_on_a_narrow_terminal_no_word_is_cut(shown: Shown) -> None:
    for command in EVERY:
        narrow, wide = shown(*command, columns=60), shown(*command, columns=80)
        assert narrow.split() == wide.split()
        assert max(map(len, narrow.splitlines())) <= 60
        assert max(map(len, wide.splitlines())) <= 80


def test_flags_have_no_type_and_values_have_a_name(shown: Shown) -> None:
    text = shown("notes", "import")
    assert "Usage: uniun notes import [OPTIONS] FOLDER\n" in text
    assert re.search(r"^  --watch +Stay", text, re.MULTILINE)
    assert "--kind chat|extract|nataraj|gana|api" in shown("ask")
    assert "[1 to 1,000,000; default: 512]" in " ".join(shown("ask").split())


def test_what_a_new_gana_has_by_itself_is_told_and_an_old_one_keeps_what_it_has(shown: Shown) -> None:
    for default in ("latest", "plain", "by hand"):
        assert f"[default: {default}]" in shown("gana", "create")
    assert "default" not in shown("gana", "edit")
