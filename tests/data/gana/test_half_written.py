"""A reaction does not read what somebody is just writing."""

import asyncio
from datetime import timedelta

from data.markdown.parser import MarkdownNoteParser
from domain.entities.note import Note
from domain.usecases.gana_calendar import GanaCalendar
from domain.usecases.gana_input import INPUT_NOTES, LONGEST_HOLD
from domain.usecases.notes import CreateNoteUseCase, EditNoteUseCase
from tests.data.gana.test_ticker import World, berlin


class Desk(World):
    """A reactive Gana that watches wool, and an editor that saves at every keystroke."""

    def __init__(self) -> None:
        super().__init__(berlin(1, 5, 12))
        self._create = CreateNoteUseCase(self.compose, self.notes, self.changes)
        self._edit = EditNoteUseCase(MarkdownNoteParser(), self.notes, self.identities, self.changes)

    async def begin(self, title: str) -> Note:
        """A new note whose first letter is typed a moment after its page was opened."""
        blank = self._create.blank(self.identities.new_id())
        self.clock.run(2)
        await self._create.keep(blank)
        return await self.type(blank, title=title)

    async def type(self, note: Note, text: str | None = None, title: str | None = None) -> Note:
        changed = await self._edit(note.id, text=text, title=title)
        self.ticker.wake([note.id])
        return changed

    async def wait(self, seconds: int) -> None:
        """The app looks every three seconds."""
        for _ in range(0, seconds, 3):
            self.clock.run(3)
            await self.look()

    def asked(self) -> list[str]:
        return [request.messages[1].content for request in self.coordinator.requests]


def test_a_note_is_read_when_it_has_been_left_alone_and_once() -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.scheduled("g", input_tag="wool", reactive=True)
        note = await desk.begin("Merino")
        await desk.type(note, "#wool ")
        await desk.wait(24)
        await desk.type(note, "#wool Merino felts at 40 degrees")
        await desk.wait(54)
        assert desk.asked() == []
        gana = await desk.ganas.get("g")
        waited = await desk.engine.writing(gana)
        assert waited is not None
        assert waited.title == "Merino"
        assert await desk.fired() == [], "nothing is logged while it waits"
        await desk.wait(12)
        (asked,) = desk.asked()
        assert "felts at 40 degrees" in asked
        assert await desk.engine.writing(await desk.ganas.get("g")) is None
        await desk.wait(300)
        assert len(desk.asked()) == 1

    asyncio.run(scenario())


def test_a_note_behind_one_that_is_being_written_is_not_lost_and_neither_is_read_twice() -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.scheduled("g", input_tag="wool", reactive=True)
        await desk.note("Sheared in May.", "wool")
        note = await desk.begin("Merino")
        await desk.type(note, "#wool ")
        await desk.note("Carded in June.", "wool")
        await desk.wait(6)
        (first,) = desk.asked()
        assert "Sheared" in first
        assert "Carded" not in first
        await desk.type(note, "#wool It felts.")
        await desk.wait(66)
        _, second = desk.asked()
        assert second.index("It felts.") < second.index("Carded")
        assert "Sheared" not in second
        await desk.wait(300)
        assert len(desk.asked()) == 2

    asyncio.run(scenario())


def test_one_who_writes_without_end_does_not_keep_others_waiting_without_end() -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.scheduled("g", input_tag="wool", reactive=True)
        note = await desk.begin("Log")
        await desk.type(note, "#wool ")
        await desk.note("Carded in June.", "wool")
        for minute in range(2 * int(LONGEST_HOLD / timedelta(minutes=1)) - 2):
            await desk.type(note, f"#wool line {minute}")
            await desk.wait(30)
        assert desk.asked() == []
        await desk.type(note, "#wool last line")
        await desk.wait(60)
        (asked,) = desk.asked()
        assert "Carded" in asked
        note = await desk.begin("Another")
        await desk.type(note, "#wool ")
        for number in range(INPUT_NOTES):
            await desk.note(f"Sheep {number}.", "wool")
        await desk.wait(6)
        assert len(desk.asked()) >= 2

    asyncio.run(scenario())


def test_a_clock_that_was_set_back_holds_nothing() -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.scheduled("g", input_tag="wool", reactive=True)
        note = await desk.begin("Merino")
        await desk.type(note, "#wool It felts.")
        desk.clock.jump(hours=-8)
        await desk.wait(6)
        assert len(desk.asked()) == 1

    asyncio.run(scenario())


def test_a_run_that_was_asked_for_or_is_due_reads_what_is_there() -> None:
    async def scenario() -> None:
        desk = Desk()
        gana = await desk.scheduled("g", input_tag="wool", reactive=True)
        await desk.scheduled("hourly", input_tag="wool", interval_minutes=60)
        note = await desk.begin("Merino")
        await desk.type(note, "#wool It felts.")
        await desk.engine.process_gana(gana, "interactive")
        assert len(desk.asked()) == 1
        desk.clock.run(3600)
        await desk.type(note, "#wool It felts at 40.")
        await desk.look()
        assert "It felts at 40." in desk.asked()[1]

    asyncio.run(scenario())


def test_of_two_processes_one_reads_it() -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.scheduled("g", input_tag="wool", reactive=True)
        note = await desk.begin("Merino")
        await desk.type(note, "#wool It felts.")
        other = GanaCalendar(desk.ganas, desk.notes, desk.due_times, desk.identities, by="background")
        assert await desk.calendar.react() is None
        assert await other.react() is None
        desk.clock.run(61)
        assert await desk.calendar.react() is not None
        assert await other.react() is None

    asyncio.run(scenario())
