import asyncio

from typer.testing import CliRunner

from presentation.cli.app import build_app
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
