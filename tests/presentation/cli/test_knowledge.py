import asyncio
import io
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from presentation.cli.app import build_app
from presentation.cli.importing import counting_bar
from tests.fakes import MemoryStore, ScriptedCoordinator, answer, fake_openers
from tests.memory.library import MemoryLibrary

READ = '{"summary": "Tea steeps.", "concepts": [{"name": "Tea", "type": "drink"}], "relations": []}'


def library(*titles: str) -> MemoryLibrary:
    filled = MemoryLibrary()
    for title in titles:
        asyncio.run(filled.write(title, title, "Tea steeps in water."))
    return filled


def test_every_pending_note_is_read_and_the_count_told() -> None:
    notes = library("One", "Two")
    app = build_app(fake_openers(ScriptedCoordinator(answer(READ)), library=notes))
    first = CliRunner().invoke(app, ["notes", "read"])
    assert (first.exit_code, first.stdout, first.stderr) == (0, "2 notes read.\n", "")
    assert asyncio.run(notes.knowledge.summary("One")) == "Tea steeps."
    again = CliRunner().invoke(app, ["notes", "read"])
    assert (again.exit_code, again.stdout) == (0, "Every note has been read.\n")


def test_the_bar_says_from_the_beginning_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(
        "presentation.cli.knowledge.err", lambda: Console(file=drawn, force_terminal=True, width=80)
    )
    notes = library("One", "Two")
    app = build_app(fake_openers(ScriptedCoordinator(answer(READ)), library=notes))
    assert CliRunner().invoke(app, ["notes", "read"]).exit_code == 0
    text = drawn.getvalue()
    assert "0/2" in text
    assert "/?" not in text


def test_a_bar_without_a_number_has_words(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(
        "presentation.cli.importing.err",
        lambda: Console(file=drawn, force_terminal=True, width=100, color_system=None),
    )
    with counting_bar("importing"):
        assert "looking what there is" in drawn.getvalue()
        assert "?" not in re.sub(r"\x1b\[\?\d+[lh]", "", drawn.getvalue())


def test_a_note_that_cannot_be_read_is_named_and_can_be_tried_again() -> None:
    notes = library("O\x1bne")
    coordinator = ScriptedCoordinator(*([answer("no JSON")] * 3), answer(READ))
    app = build_app(fake_openers(coordinator, library=notes))
    failed = CliRunner().invoke(app, ["notes", "read"])
    assert failed.exit_code == 1
    assert failed.stdout == "0 notes read.\n"
    assert failed.stderr.count("One could not be read this time.") == 3
    assert "1 note could not be read. See: uniun notes failures" in failed.stderr
    assert "no extraction" in CliRunner().invoke(app, ["notes", "failures", "--retry"]).stdout
    assert CliRunner().invoke(app, ["notes", "read"]).stdout == "1 note read.\n"
    assert "Tea" in CliRunner().invoke(app, ["notes", "graph"]).stdout


def test_the_default_model_is_fetched_first() -> None:
    store = MemoryStore()
    app = build_app(fake_openers(ScriptedCoordinator(answer(READ)), store, library=library("One")))
    assert CliRunner().invoke(app, ["notes", "read"]).exit_code == 0
    assert store.pulled == ["tiny"]
