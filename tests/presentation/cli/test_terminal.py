import sys
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from domain.errors import InvalidRequest
from presentation.cli.terminal import ask_first, make_sure, printable, say, size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/red] 🌱 नमस्ते", "plain [red]text[/red] 🌱 नमस्ते"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x1b]0;title\x07", "]0;title"),
        ("a\rb\x08c\x7f\x9b2J\ud800", "abc2J"),
    ],
)
def test_control_characters_never_reach_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1500, "2 kB"), (108_900_000, "108.9 MB"), (2.5e12, "2.5 TB")]
)
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


def test_what_cannot_be_taken_back_is_not_done_where_nobody_can_be_asked() -> None:
    make_sure("delete it", sure=True)
    with pytest.raises(InvalidRequest, match=r"^Nobody can be asked whether to delete it\. Add --yes"):
        make_sure("delete it", sure=False)


def test_what_loses_nothing_that_was_typed_is_done_there() -> None:
    ask_first("delete it", sure=False)


@pytest.mark.parametrize("ask", [make_sure, ask_first])
@pytest.mark.parametrize(("typed", "goes_on"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_on_a_terminal_it_is_asked(
    typed: str, goes_on: bool, ask: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()
    done: list[str] = []

    @app.command()
    def deed() -> None:
        # The command sees the stdin of the runner, which is made when it begins.
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        ask("delete it", sure=False)
        done.append("it")

    said = CliRunner().invoke(app, input=typed)
    assert said.stderr.startswith("Delete it? [y/N]")
    assert (done, said.exit_code) == ((["it"], 0) if goes_on else ([], 1))
    if typed and not goes_on:
        assert str(said.exception) == "Nothing was changed."


def test_what_is_told_folds_at_words_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "a sentence of many words, and /a/path/that-is/longer-than/every/line-of-this/terminal, " * 2
    monkeypatch.setenv("COLUMNS", "60")
    say(told)
    assert capsys.readouterr().err == f"uniun: {told}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    say(told)
    lines = capsys.readouterr().err.splitlines()
    assert all(len(line) <= 59 or " " not in line for line in lines)
    assert " ".join(lines).split() == f"uniun: {told}".split()
