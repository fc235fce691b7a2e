"""The design note's table of call sites: which kind, flow, hint, deadline and surface each site passes, row by row.

One test a row. A row drives the real controller and use cases over a coordinator that only writes down; what it wrote
is compared whole, so that a site that says too much fails as well. `Submission` is one request, `surfaces` is what the
user was said to look at, in order.
"""

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, NamedTuple

from domain.entities.conversation import Draft
from domain.entities.llm import LlmTaskKind
from presentation.controllers.chat import ChatController
from presentation.controllers.composer_chat import ComposerChatController
from presentation.controllers.knowledge import KnowledgeController
from tests.fakes import MemoryStore, ScriptedCoordinator, answer
from tests.memory.chat import MemoryChat, knowledge_controller
from tests.memory.library import MemoryLibrary

ACTIVE_MODEL = "tiny"
"""The default of `MemoryStore`: the note's "active chat model"."""
READ = answer('{"summary": "A note.", "concepts": [], "relations": []}')


class Submission(NamedTuple):
    kind: LlmTaskKind
    flow: str
    model: str
    foreground_hint: bool = False
    deadline: datetime | None = None


def submissions(coordinator: ScriptedCoordinator) -> list[Submission]:
    return [Submission(r.kind, r.flow, r.model, r.foreground_hint, r.deadline) for r in coordinator.requests]


def run(site: Coroutine[Any, Any, None]) -> None:
    asyncio.run(site)


# -- chat


def test_chat_send() -> None:
    """`ShivAIBloc.send`: chat; the surface is set while the page is open; active chat model."""
    coordinator = ScriptedCoordinator()
    chat = ChatController(MemoryChat(coordinator, MemoryStore(ACTIVE_MODEL)).use_cases)

    async def site() -> None:
        conversation = await chat.begin()
        with chat:
            [_ async for _ in chat.send("hello")]
            [_ async for _ in chat.retry()]
            [_ async for _ in chat.edit("hello?")]
        assert submissions(coordinator) == 3 * [Submission(LlmTaskKind.CHAT, conversation.id, ACTIVE_MODEL)]
        assert coordinator.surfaces == [(LlmTaskKind.CHAT, conversation.id), (None, None)]

    run(site())


def test_composer_chat_send() -> None:
    """`ComposerChatCubit.send`: chat; the surface is set while the panel is open, then the note's again."""
    coordinator = ScriptedCoordinator()
    chat = ComposerChatController(
        MemoryChat(coordinator, MemoryStore(ACTIVE_MODEL)).use_cases, note_id="note1"
    )
    chat.draft = Draft(title="Tea", text="Boil water.")

    async def site() -> None:
        conversation = await chat.begin()
        with chat:
            [_ async for _ in chat.send("What next?")]
        assert submissions(coordinator) == [Submission(LlmTaskKind.CHAT, conversation.id, ACTIVE_MODEL)]
        assert coordinator.surfaces == [
            (LlmTaskKind.CHAT, conversation.id),
            (LlmTaskKind.EXTRACT, "note1"),
        ]

    run(site())


# -- knowledge


def knowledge(coordinator: ScriptedCoordinator, library: MemoryLibrary) -> KnowledgeController:
    return knowledge_controller(coordinator, MemoryStore(ACTIVE_MODEL), library)


def test_extraction_of_an_opened_note() -> None:
    """`ExtractKnowledgeUseCase`, note just opened: extract, hinted; the surface is the note; active chat model."""
    coordinator, library = ScriptedCoordinator(READ), MemoryLibrary()

    async def site() -> None:
        await library.write("note1", "Tea", "Boil water.")
        with knowledge(coordinator, library).open_note("note1") as note:
            assert await note.read() == "read"
        assert submissions(coordinator) == [
            Submission(LlmTaskKind.EXTRACT, "note1", ACTIVE_MODEL, foreground_hint=True)
        ]
        assert coordinator.surfaces == [(LlmTaskKind.EXTRACT, "note1"), (None, None)]

    run(site())


def test_extraction_backfill() -> None:
    """`ExtractKnowledgeUseCase`, backfill loop: extract, one flow a note; no hint, no surface; active chat model."""
    coordinator, library = ScriptedCoordinator(READ), MemoryLibrary()

    async def site() -> None:
        await library.write("note1", "Tea", "Boil water.")
        await library.write("note2", "Coffee", "Grind beans.")
        [_ async for _ in knowledge(coordinator, library).read_pending()]
        assert submissions(coordinator) == [
            Submission(LlmTaskKind.EXTRACT, "note1", ACTIVE_MODEL),
            Submission(LlmTaskKind.EXTRACT, "note2", ACTIVE_MODEL),
        ]
        assert coordinator.surfaces == []

    run(site())
