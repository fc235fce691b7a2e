"""From two notes to an answer that cites them, on the real engine, embedder and database."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.database.session import sqlite_url
from data.models.store import FileModelStore
from data.settings import Settings
from domain.entities.conversation import AnswerBegun
from domain.entities.llm import Finished
from domain.entities.note import Note, hash_content
from domain.usecases.chat import Asking
from tests.conftest import TEST_STORE
from uniun import build_container

NOTES = {
    "tea": (
        "Green tea",
        "Green tea is steeped for two minutes in water of eighty degrees. Mika grows it in Uji.",
    ),
    "stoics": (
        "Stoics",
        "Zeno of Citium taught in a painted porch in Athens. His pupils were called Stoics.",
    ),
}


@pytest.mark.model
def test_from_notes_to_a_cited_answer(model_store: FileModelStore, tmp_path: Path) -> None:
    container = build_container(
        Settings(data_dir=TEST_STORE, database_url=sqlite_url(tmp_path / "uniun.db"), log_dir=tmp_path)
    )
    at = datetime(2026, 1, 1, tzinfo=UTC)

    async def scenario() -> None:
        notes = [
            Note(
                id=note_id,
                title=title,
                text=text,
                created_at=at,
                changed_at=at,
                content_hash=hash_content(title, text, ()),
            )
            for note_id, (title, text) in NOTES.items()
        ]
        await container.note_repository().save(notes)
        knowledge = container.knowledge_repository()
        assert {one.note_id for one in await knowledge.pending(9)} == set(NOTES)

        # A tiny model may fail at a note, but then it says why; what it has read has the right shape.
        steps = [step async for step in container.knowledge_controller().read_pending()]
        assert steps[-1].waiting == 0
        assert steps[-1].done + steps[-1].failed == len(NOTES)
        assert steps[-1].done >= 1
        for note_id in {step.note_id for step in steps if step.outcome == "read"}:
            assert await knowledge.summary(note_id)
        for failure in await knowledge.failures():
            assert failure.error

        vectors, embedder = container.vector_repository(), container.embedder()
        for note_id, content_hash, text in await vectors.waiting(9):
            assert await vectors.store(note_id, content_hash, await embedder.embed(text))

        conversation = await container.chat_use_cases().begin()
        asking = Asking(conversation=conversation, text="How long is green tea steeped?", parent_id=None)
        events = [event async for event in container.chat_use_cases().answer(asking).events()]
        begun = events[0]
        assert isinstance(begun, AnswerBegun)
        assert begun.hindrance is None
        assert begun.citations[0].note_id == "tea"
        assert isinstance(events[-1], Finished)

        view = await container.chat_use_cases().show(conversation.id)
        assert view.conversation.title == "How long is green tea steeped?"
        answer = view.path[-1].message
        assert answer.state == "complete"
        assert answer.content.strip()
        assert "tea" in [citation.note_id for citation in answer.citations]

    async def main() -> None:
        async with container.dispatcher():
            try:
                await scenario()
            finally:
                await container.database().aclose()

    asyncio.run(main())
