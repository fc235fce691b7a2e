"""The design note's table of call sites: which kind, flow, hint, deadline and surface each site passes, row by row.

One test a row. A row drives the real controller and use cases over a coordinator that only writes down; what it wrote
is compared whole, so that a site that says too much fails as well. `Submission` is one request, `surfaces` is what the
user was said to look at, in order.
"""

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, NamedTuple

from data.gana.ticker import GanaTicker
from data.identity import RandomIdentities
from data.nataraj.refill import DeckRefill
from domain.entities.conversation import Draft
from domain.entities.llm import LlmTaskKind
from domain.usecases.gana_calendar import GanaCalendar
from presentation.controllers.chat import ChatController
from presentation.controllers.composer_chat import ComposerChatController
from presentation.controllers.knowledge import KnowledgeController
from tests.fakes import MemoryStore, ScriptedCoordinator, answer
from tests.memory.chat import MemoryChat, knowledge_controller
from tests.memory.claims import MemoryClaims
from tests.memory.clock import HandClock
from tests.memory.gana_world import GanaWorld
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
            Submission(LlmTaskKind.EXTRACT, "note2", ACTIVE_MODEL),
            Submission(LlmTaskKind.EXTRACT, "note1", ACTIVE_MODEL),
        ]
        assert coordinator.surfaces == []

    run(site())


# -- deck and Ganas


def test_nataraj_fill() -> None:
    """`NatarajGenerator.fillBuffer`: nataraj, one flow a scope; the surface is the open deck; active chat model."""
    world = GanaWorld()
    nataraj = world.nataraj_controller()

    async def site() -> None:
        for number in range(3):
            await world.note(f"Text {number}.", title=f"Note {number}")
        with nataraj.open("all"):
            await nataraj.fill("all", 2)
        assert submissions(world.coordinator) == 2 * [Submission(LlmTaskKind.NATARAJ, "all", ACTIVE_MODEL)]
        assert world.coordinator.surfaces == [(LlmTaskKind.NATARAJ, "all"), (None, None)]

    run(site())


def test_nataraj_refill() -> None:
    """The same from the background: no surface."""
    world = GanaWorld()

    async def site() -> None:
        for number in range(3):
            await world.note(f"Text {number}.", title=f"Note {number}")
        await DeckRefill(world.generator, world.cards, HandClock(), MemoryClaims()).fill()
        assert set(submissions(world.coordinator)) == {Submission(LlmTaskKind.NATARAJ, "all", ACTIVE_MODEL)}
        assert world.coordinator.surfaces == []

    run(site())


def test_gana_interactive() -> None:
    """`GanaEngine.processGana`, interactive: gana, no deadline; the surface is the open form; the Gana's own model."""
    world = GanaWorld(None, ACTIVE_MODEL, "its own")
    ganas = world.gana_controller()

    async def site() -> None:
        gana = await world.gana(model="its own")
        with ganas.form(gana.id) as form:
            await form.preview()
            await ganas.run(gana.id)
        assert submissions(world.coordinator) == 2 * [Submission(LlmTaskKind.GANA, gana.id, "its own")]
        assert world.coordinator.surfaces == [(LlmTaskKind.GANA, gana.id), (None, None)]

    run(site())


def test_gana_cron_fire() -> None:
    """`GanaEngine.processGana`, cron fire: gana with its due time as deadline; no surface; the Gana's own model."""
    clock = HandClock()
    world = GanaWorld(None, ACTIVE_MODEL, "its own", identities=RandomIdentities(clock))
    calendar = GanaCalendar(world.ganas, world.notes, world.due_times, world.identities)
    ticker = GanaTicker(calendar, world.engine, world.ganas, clock)

    async def site() -> None:
        gana = await world.gana(model="its own", due_at=clock.now(), interval_minutes=30)
        await ticker.look()
        await ticker.idle()
        due = Submission(LlmTaskKind.GANA, gana.id, "its own", deadline=gana.due_at)
        assert submissions(world.coordinator) == [due]
        assert world.coordinator.surfaces == []

    run(site())


def test_gana_agentic_round() -> None:
    """Each round of an agentic Gana is one job, with the run's deadline."""
    look, end = ('{"tool": "search_notes", "argument": "tea"}', '{"tool": "publish", "argument": "Tea."}')
    world = GanaWorld(ScriptedCoordinator(answer(look), answer(end)))

    async def site() -> None:
        gana = await world.gana(agentic=True, due_at=world.now)
        tick = await world.ganas.claim(gana.id, gana.due_at, None, by="app", now=world.now)
        await world.engine.process_gana(gana, "cron", tick=tick)
        due = Submission(LlmTaskKind.GANA, gana.id, ACTIVE_MODEL, deadline=gana.due_at)
        assert submissions(world.coordinator) == [due, due]

    run(site())
