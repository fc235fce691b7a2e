"""One user's first hour, on the real engine, embedder and database: from a folder of notes to what a Gana publishes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import uniun
from data.models.store import FileModelStore
from domain.entities.llm import GenerationEvent, TextDelta
from domain.entities.nataraj import MAX_CARD_WORDS, WHOLE_LIBRARY
from presentation.cli.openers import Controllers
from tests.conftest import TEST_STORE

PATIENCE_S = 240
"""For a machine that does much else at the same time."""
NOTES = {
    "Green tea.md": "Green tea is steeped for two minutes in water of eighty degrees. Mika grows it in Uji. #tea",
    "Tea house.md": "---\ntags: [tea]\n---\nThe tea house of Uji opens in April. See [[Green tea]].",
}


@pytest.fixture
def vault(model_store: FileModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes, beside a data folder that has the models and nothing else."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    for weights in ("models", "embedders"):
        (TEST_STORE / weights).mkdir(exist_ok=True)
        (data_dir / weights).symlink_to(TEST_STORE / weights)
    monkeypatch.setenv("UNIUN_DATA_DIR", str(data_dir))
    monkeypatch.setenv("UNIUN_LOG_DIR", str(tmp_path / "logs"))
    vault = tmp_path / "vault"
    vault.mkdir()
    for name, text in NOTES.items():
        (vault / name).write_text(text, encoding="utf-8")
    return vault


@pytest.mark.model
def test_from_a_folder_to_what_a_gana_publishes(vault: Path) -> None:
    async def main() -> None:
        async with uniun.open_controllers() as program:
            await read_folder(program, vault)
            await ask(program)
            await play_a_card(program)
            await program.ganas.create(
                {"name": "digest", "task": "Say in one sentence what is new.", "output_tag": "digest"}
                | {"trigger": "on new notes tagged inbox"}
            )
            await program.ganas.enable("digest", on=True)
        async with uniun.open_app() as app:
            await react(app)

    asyncio.run(main())


async def read_folder(program: Controllers, vault: Path) -> None:
    report = await program.notes.import_folder(vault)
    assert (report.created, report.problems) == (len(NOTES), ())
    assert await program.notes.embed() == len(NOTES)
    found = await program.notes.search("How hot must it be for brewing?", mode="meaning", limit=1)
    assert [hit.title for hit in found.hits] == ["Green tea"]

    # A tiny model may fail at a note, but then it says why.
    steps = [step async for step in program.knowledge.read_pending()]
    assert steps[-1].waiting == 0
    assert steps[-1].done + steps[-1].failed == len(NOTES)
    assert steps[-1].done >= 1
    for step in steps:
        if step.outcome == "read":
            details = await program.notes.show(step.note_id)
            assert details.summary
            assert details.pending is None
    assert all(failure.error for failure in await program.knowledge.failures())
    assert (await program.notes.show("Green tea")).backlinks[0].title == "Tea house"


async def ask(program: Controllers) -> None:
    streamed: list[GenerationEvent] = []
    answer = await program.ask.ask_notes(
        "How long is green tea steeped?", on_event=streamed.append, max_tokens=40
    )
    assert answer.result.text.strip()
    assert any(isinstance(event, TextDelta) for event in streamed)
    assert answer.hindrance is None
    assert "Green tea" in [citation.title for citation in answer.citations]


async def play_a_card(program: Controllers) -> None:
    filled = await program.nataraj.fill(WHOLE_LIBRARY, 1)
    assert filled.cards or filled.barren, "neither a card nor a reason why not"
    for card in filled.cards:
        assert 1 <= len(card.text.split()) <= MAX_CARD_WORDS
        note = await program.nataraj.keep(card.id)
        assert note.source == "nataraj"
        assert {link.target for link in (await program.notes.show(note.id)).links} == set(
            await program.nataraj.titles(card)
        )
        assert (await program.nataraj.deck(WHOLE_LIBRARY)).counts["kept"] == 1


async def react(app: Controllers) -> None:
    new = await app.notes.add("The mill reopened on Monday; flour is cheaper.", tags=["inbox"])

    async def ended() -> bool:
        return any(run.status != "running" for run in await app.ganas.runs("digest"))

    await until(ended)
    [run] = await app.ganas.runs("digest")
    assert (run.status, run.due_at, run.by) == ("succeeded", None, "app"), run.detail
    assert run.input_note_ids == (new.id,)
    assert run.tokens > 0
    [line] = await app.notes.list(tag="digest")
    assert (line.id, line.source) == (run.output_note_id, "gana")
    again = await app.ganas.run("digest")
    assert (again.status, again.reason) == ("skipped", "no_new_input")
    assert len(await app.notes.list(tag="digest")) == 1


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - a face asks too
            await asyncio.sleep(0.1)
