import asyncio

import pytest

from domain.entities.knowledge import NoteReading
from domain.entities.note import Note, NoteDetails
from domain.errors import InvalidRequest, NoteChanged, NoteNotFound
from presentation.controllers.notes import NotesController
from presentation.web.notes_field import Edit
from presentation.web.notes_reading import reading_words
from presentation.web.notes_saver import GONE, NoteSaver
from tests.fakes import MemoryStore, ScriptedCoordinator
from tests.memory.chat import knowledge_controller
from tests.memory.faces import MemoryFaces
from tests.memory.library import MemoryLibrary


class Paper:
    """Implements `Field`."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []

    def saved(self, serial: int, note: Note) -> None:
        self.said.append(("saved", serial))

    def failed(self, why: str) -> None:
        self.said.append(("failed", why))

    def conflict(self) -> None:
        self.said.append(("conflict", None))

    def load(self, note: Note, serial: int | None = None) -> None:
        self.said.append(("load", note.text))

    def resend(self) -> None:
        self.said.append(("resend", None))


class Desk:
    def __init__(self) -> None:
        library = MemoryLibrary()
        coordinator = ScriptedCoordinator()
        faces = MemoryFaces(library, knowledge_controller(coordinator, MemoryStore("tiny"), library))
        self.notes: NotesController = faces.notes()
        self.paper = Paper()

    async def open(self, text: str = "one") -> NoteSaver:
        return NoteSaver(self.notes, await self.notes.add(text), self.paper)

    async def text(self, saver: NoteSaver) -> str:
        return (await self.notes.show(saver.note.id)).note.text


def test_what_is_typed_is_saved_and_the_title_follows_until_it_is_given() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        assert await saver.take(Edit(1, "one", "first line\nmore"))
        assert saver.note.title == "first line"
        assert await saver.take(Edit(2, "Mine", "other line"))
        assert await saver.take(Edit(3, "Mine", "third line"))
        assert saver.note.title == "Mine"
        assert desk.paper.said == [("saved", 1), ("saved", 2), ("saved", 3)]

    asyncio.run(write())


def test_of_what_comes_at_once_only_the_newest_is_saved() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        await asyncio.gather(*(saver.take(Edit(n, "one", f"text {n}")) for n in range(1, 6)))
        assert await desk.text(saver) == "text 5"
        assert desk.paper.said[-1] == ("saved", 5)

    asyncio.run(write())


def test_a_change_from_elsewhere_is_not_overwritten() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        await desk.notes.change(saver.note.id, text="theirs")
        assert not await saver.take(Edit(1, "one", "mine"))
        assert not await saver.take(Edit(2, "one", "mine, longer"))
        assert await desk.text(saver) == "theirs"
        assert desk.paper.said == [("conflict", None)]
        saver.keep_mine()
        assert await saver.take(Edit(3, "one", "mine, longer"))
        assert await desk.text(saver) == "mine, longer"

    asyncio.run(write())


def test_both_versions_can_be_kept() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        await desk.notes.change(saver.note.id, text="theirs")
        await saver.take(Edit(1, "one", "mine"))
        copy = await saver.keep_both(Edit(1, "one", "mine"))
        assert (copy.title, copy.text, await desk.text(saver)) == ("one (my version)", "mine", "theirs")
        assert desk.paper.said[-1] == ("load", "theirs")

    asyncio.run(write())


def test_the_same_change_elsewhere_is_no_conflict() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        await desk.notes.change(saver.note.id, text="same")
        assert await saver.take(Edit(1, "same", "same"))
        assert saver.theirs is None

    asyncio.run(write())


def test_an_untouched_field_shows_what_changed_elsewhere() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        assert not await saver.look(0)
        await desk.notes.change(saver.note.id, text="theirs")
        assert not await saver.look(None)
        assert await saver.look(0)
        assert desk.paper.said == [("load", "theirs")]
        await desk.notes.tag(saver.note.id, ["new"], [])
        assert await saver.look(0)
        assert desk.paper.said == [("load", "theirs")]

    asyncio.run(write())


def test_what_was_typed_into_the_old_text_is_not_saved_over_the_one_that_is_loaded() -> None:
    """A keystroke may be on its way to the server while what another page wrote is on its way to the browser."""

    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        before = saver.note.content_hash
        await desk.notes.change(saver.note.id, text="theirs")
        assert await saver.look(0)
        assert not await saver.take(Edit(1, "one", "one, and mine", seen=before))
        assert desk.paper.said == [("load", "theirs"), ("conflict", None)]
        assert await desk.text(saver) == "theirs"
        saver.keep_mine()
        assert await saver.take(Edit(2, "one", "one, and mine", seen=before))
        assert await desk.text(saver) == "one, and mine"

    asyncio.run(write())


def test_what_comes_while_the_note_is_looked_at_is_not_loaded_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        await desk.notes.change(saver.note.id, text="theirs")
        asked, answered, show = asyncio.Event(), asyncio.Event(), desk.notes.show

        async def late(note_id: str) -> NoteDetails:
            asked.set()
            await answered.wait()
            return await show(note_id)

        monkeypatch.setattr(desk.notes, "show", late)
        looking = asyncio.create_task(saver.look(0))
        await asked.wait()
        taking = asyncio.create_task(saver.take(Edit(1, "one", "mine")))
        await asyncio.sleep(0)
        answered.set()
        assert (await looking, await taking) == (False, False)
        assert desk.paper.said == [("conflict", None)]

    asyncio.run(write())


def test_tags_change_between_saves_and_not_over_a_change_from_elsewhere() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open("#inside")
        await saver.retag(["new"], [])
        assert [*saver.note.tags] == ["inside", "new"]
        assert await saver.take(Edit(1, saver.note.title, "#inside, longer"))
        await saver.retag([], ["new", "inside"])
        assert [*saver.note.tags] == ["inside"]
        await desk.notes.change(saver.note.id, text="theirs")
        with pytest.raises(NoteChanged):
            await saver.retag(["late"], [])

    asyncio.run(write())


def test_what_cannot_be_saved_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()

        async def refuse(*args: object, **more: object) -> Note:
            raise InvalidRequest("The disk is full.")

        monkeypatch.setattr(desk.notes, "change", refuse)
        assert not await saver.take(Edit(1, "one", "mine"))
        assert desk.paper.said == [("failed", "The disk is full.")]

        async def break_down(*args: object, **more: object) -> Note:
            raise RuntimeError("a bug")

        monkeypatch.setattr(desk.notes, "change", break_down)
        assert not await saver.take(Edit(2, "one", "mine"))
        assert desk.paper.said[-1][0] == "failed"
        assert "a bug" not in str(desk.paper.said[-1][1])

    asyncio.run(write())


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (NoteReading(state="read"), "Read into the graph"),
        (NoteReading(state="reading", tokens=3), "Being read now… 3 tokens"),
        (NoteReading(state="failed", error="No JSON."), "Could not be read: No JSON."),
        (NoteReading(state="waiting", position=2, estimated_start_s=7.6), "place 2 in the queue, about 8 s"),
        (NoteReading(state="waiting"), "Waiting to be read: no model"),
    ],
)
def test_how_far_a_note_is_in_words(reading: NoteReading, words: str) -> None:
    assert words in reading_words(reading, "no model")


def test_a_note_that_was_begun_is_kept_when_something_is_typed() -> None:
    async def write() -> None:
        desk = Desk()
        begun = "0" * 32
        saver = NoteSaver(desk.notes, desk.notes.blank(begun), desk.paper, kept=False)
        assert not await saver.look(0)
        with pytest.raises(NoteNotFound):
            await desk.notes.show(begun)
        # Another tab at the same address was faster.
        other = NoteSaver(desk.notes, desk.notes.blank(begun), desk.paper, kept=False)
        assert await other.take(Edit(1, "", "theirs"))
        assert not await saver.take(Edit(1, "", "mine"))
        assert saver.theirs is not None
        assert await desk.text(saver) == "theirs"
        copy = await saver.keep_both(Edit(1, "", "mine\nand more"))
        assert (copy.title, copy.text) == ("mine (my version)", "mine\nand more")

    asyncio.run(write())


def test_two_tabs_that_begin_one_note_in_the_same_moment_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def write() -> None:
        desk = Desk()
        keep = desk.notes.keep
        both = asyncio.Barrier(2)

        async def together(note: Note) -> bool:
            """Both have found that there is none yet."""
            await both.wait()
            return await keep(note)

        monkeypatch.setattr(desk.notes, "keep", together)
        one, two = (
            NoteSaver(desk.notes, desk.notes.blank("0" * 32), desk.paper, kept=False) for _ in range(2)
        )
        saved = await asyncio.gather(one.take(Edit(1, "", "one")), two.take(Edit(1, "", "two")))
        assert sorted(saved) == [False, True]
        assert await desk.text(one) == ("one" if saved[0] else "two")
        assert (two if saved[0] else one).theirs is not None

    asyncio.run(write())


def test_a_note_in_which_nothing_is_left_goes_when_it_is_left_and_comes_back_when_it_is_typed_into() -> None:
    async def write() -> None:
        desk = Desk()
        saver = NoteSaver(desk.notes, desk.notes.blank("0" * 32), desk.paper, kept=False)
        assert not await saver.leave()
        assert await saver.take(Edit(1, "", "a letter"))
        assert not await saver.leave()
        assert await saver.take(Edit(2, "", ""))
        await saver.retag(["kept"], [])
        assert not await saver.leave()
        await saver.retag([], ["kept"])
        await desk.notes.add("See [[Untitled]]")
        assert not await saver.leave()
        await desk.notes.delete((await desk.notes.list())[0].id)
        other = NoteSaver(desk.notes, saver.note, desk.paper)
        assert await saver.leave()
        with pytest.raises(NoteNotFound):
            await desk.notes.show(saver.note.id)
        assert await other.take(Edit(3, "", "typed in another tab"))
        assert not await saver.leave()
        assert await desk.text(saver) == "typed in another tab"

    asyncio.run(write())


def test_a_note_that_was_deleted_elsewhere_is_said_to_be() -> None:
    async def write() -> None:
        desk = Desk()
        saver = await desk.open()
        await desk.notes.delete(saver.note.id)
        assert not await saver.take(Edit(1, "one", "more"))
        assert desk.paper.said == [("failed", GONE)]

    asyncio.run(write())
