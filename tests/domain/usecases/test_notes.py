import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from data.markdown.parser import MarkdownNoteParser
from domain.entities.nataraj import Card
from domain.entities.note import Link, Note, NoteDraft, normal_tag
from domain.errors import InvalidRequest, NoteChanged, NoteNotFound
from domain.usecases.notes import (
    ComposeNote,
    CreateNoteUseCase,
    DeleteNoteUseCase,
    EditNoteUseCase,
    FindNoteUseCase,
    GetNoteUseCase,
    ListNotesUseCase,
    TagNoteUseCase,
    title_of,
)
from tests.memory.cards import MemoryCards
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary

T = TypeVar("T")


class Kept:
    """Implements `NoteChanges`."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def announce(self, note_ids: object) -> None:
        assert isinstance(note_ids, list)
        self.ids += note_ids


class Desk:
    """The use cases over one memory."""

    def __init__(self) -> None:
        self.library = MemoryLibrary()
        self.notes = self.library.notes
        self.cards = MemoryCards()
        self.kept = Kept()
        parser, identities = MarkdownNoteParser(), CountingIdentities()
        self.compose = ComposeNote(parser, identities)
        self.create_note = CreateNoteUseCase(self.compose, self.notes, self.kept)
        self.edit = EditNoteUseCase(parser, self.notes, identities, self.kept)
        self.tag = TagNoteUseCase(self.edit, self.notes, parser)
        self.delete = DeleteNoteUseCase(self.notes, self.cards)
        self.find = FindNoteUseCase(self.notes)
        self.get = GetNoteUseCase(parser, self.notes, self.library.knowledge)
        self.list = ListNotesUseCase(self.notes)

    def create(self, text: str, **fields: Any) -> Note:
        return run(self.create_note(text, **fields))


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_note_is_made_of_its_text(desk: Desk) -> None:
    note = desk.create("# Plan\n\n#Work with [[Ann]]", tags=("Idea",))
    assert (note.title, note.tags, note.links, note.source) == ("Plan", ("idea", "work"), ("Ann",), "typed")
    assert note.created_at == note.changed_at
    assert desk.kept.ids == [note.id]
    assert run(desk.library.vectors.waiting_count()) == 1
    assert run(desk.library.knowledge.pending_of(note.id)) is not None


def test_front_matter_counts(desk: Desk) -> None:
    note = desk.create("---\ntitle: T\ntags: [x]\naliases: [A]\ncreated: 2024-05-01T00:00:00Z\n---\nbody")
    assert (note.title, note.text, note.tags, note.aliases) == ("T", "body", ("x",), ("A",))
    assert note.created_at == datetime(2024, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n\n- [ ] buy milk\nmore", "[ ] buy milk"),
        ("## Part", "Part"),
        ("word " * 100, "word " * 15 + "word…"),
        ("\n---\n\n***\n", "Untitled"),
        ("\x07\u200b", "Untitled"),
    ],
)
def test_the_first_line_is_a_title(text: str, title: str) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize(
    ("text", "tags", "reason"),
    [
        (" \n", [], "empty"),
        ("half \ud83d", [], "Character 6"),
        ("x", ["t" * 100 + "/u"], "more than 100"),
        ("x", [f"t{n}" for n in range(500)], "400 tags"),
        ("x" * 10_000_001, [], "10000000 characters"),
    ],
)
def test_what_cannot_be_kept_is_refused(text: str, tags: list[str], reason: str, desk: Desk) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        desk.create(text, tags=tags)
    note = desk.create("kept")
    if text.strip():
        with pytest.raises(InvalidRequest, match=reason):
            run(desk.edit(note.id, text=text, tags=tags))
    assert run(desk.notes.get(note.id)) == note


def test_what_a_model_wrote_tags_nothing(desk: Desk) -> None:
    text = "---\ntags: [inbox]\n---\n#inbox [[Ann]]"
    note = desk.compose(NoteDraft(text=text, source="gana", origin="g1", tags=("Out",)))
    assert (note.text, note.tags, note.links, note.origin) == (text, ("out",), ("Ann",), "g1")


@pytest.mark.parametrize("target", ["map.png", "Files/Talk.M4A", "paper.v2.pdf", "data.csv"])
def test_no_note_is_missing_where_a_file_is_shown(target: str) -> None:
    def link(target: str, target_id: str | None = None) -> Link:
        return Link(source_id="a", target=target, target_id=target_id)

    assert link(target).to_file
    assert not link(target, "b").to_file, "a note may be called so"
    assert not any(link(name).to_file for name in ("map", "png", "v1.2", "node.js", ".png.", ""))


def test_editing_reads_tags_and_links_anew(desk: Desk) -> None:
    note = desk.create("# One\n#a [[X]]", tags=("mine",))
    edited = run(desk.edit(note.id, text="# Two\n#b [[Y]]"))
    assert (edited.title, edited.tags, edited.links) == ("Two", ("b", "mine"), ("Y",))
    assert edited.id == note.id
    assert edited.created_at == note.created_at
    assert edited.changed_at > note.changed_at
    assert edited.content_hash != note.content_hash
    assert desk.kept.ids == [note.id, note.id]


def test_a_title_of_its_own_stays(desk: Desk) -> None:
    note = desk.create("# One", title="Named")
    assert run(desk.edit(note.id, text="# Two")).title == "Named"
    assert run(desk.edit(note.id, title="")).title == "Two"


@pytest.mark.parametrize("document", ["", "\n \n"])
def test_an_empty_document_takes_no_notes_place(desk: Desk, document: str) -> None:
    note = desk.create("text", title="T", tags=("b",))
    with pytest.raises(InvalidRequest, match="is empty"):
        desk.edit.preview(document)
    with pytest.raises(InvalidRequest, match="is empty"):
        run(desk.edit.rewrite(note.id, document, note.content_hash))
    assert run(desk.notes.get(note.id)) == note


@pytest.mark.parametrize(
    "document", ["---\ntitle: New\n---\n\nfour", "# Heading\n\nmore", "only words", "---\n---\n"]
)
def test_a_preview_says_what_a_rewrite_makes(desk: Desk, document: str) -> None:
    note = desk.create("text", title="T")
    promised = desk.edit.preview(document)
    made = run(desk.edit.rewrite(note.id, document, note.content_hash))
    assert promised == (made.title, len(made.text))


def test_an_edit_that_changes_nothing_saves_nothing(desk: Desk) -> None:
    note = desk.create("---\nnot: front matter\n---\n---\nlooks: so\n---\n#a", title="T", tags=("b",))
    saves = desk.notes.saves
    document, seen = run(desk.edit.document(note.id))
    assert run(desk.edit.rewrite(note.id, document, seen)) == note
    assert run(desk.edit(note.id)) == note
    assert desk.notes.saves == saves


def test_a_document_is_taken_back(desk: Desk) -> None:
    note = desk.create("---\ntitle: T\naliases: [A]\ntags: out\n---\ntext #in")
    document, seen = run(desk.edit.document(note.id))
    assert document == "---\ntitle: T\ntags:\n- out\naliases:\n- A\n---\n\ntext #in"
    changed = document.replace("title: T", "title: U").replace("- out", "- far").replace("#in", "#new")
    edited = run(desk.edit.rewrite(note.id, changed, seen))
    assert (edited.title, edited.tags, edited.text) == ("U", ("far", "new"), "text #new")
    bare = run(desk.edit.rewrite(note.id, "all gone", edited.content_hash))
    assert (bare.title, bare.tags, bare.aliases) == ("all gone", (), ())


def test_a_document_is_refused_whole(desk: Desk) -> None:
    note = desk.create("text", title="T")
    _, seen = run(desk.edit.document(note.id))
    with pytest.raises(InvalidRequest, match="line 2"):
        run(desk.edit.rewrite(note.id, "---\ntitle: a: b\n---\nx", seen))
    run(desk.edit(note.id, text="by somebody else"))
    with pytest.raises(InvalidRequest, match="changed by something else"):
        run(desk.edit.rewrite(note.id, "mine", seen))
    assert run(desk.notes.get(note.id)).text == "by somebody else"


def test_tags(desk: Desk) -> None:
    note = desk.create("#inside", tags=("a", "b"))
    assert run(desk.tag(note.id, ["New Tag", "#c"], ["B"])).tags == ("a", "c", "inside", "new-tag")
    with pytest.raises(InvalidRequest, match="written in the text"):
        run(desk.tag(note.id, [], ["inside"]))
    assert list(run(desk.list.tags())) == ["a", "c", "inside", "new-tag"]
    assert [line.id for line in run(desk.list(tag="#NEW tag"))] == [note.id]
    desk.create("x", tags=("a/below",))
    assert len(run(desk.list(tag="a"))) == 2


def test_deleting_takes_the_cards_along(desk: Desk) -> None:
    one, two = desk.create("one"), desk.create("two")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    ids = tuple(sorted((one.id, two.id)))
    run(desk.cards.put(Card(id="c", scope="all", note_ids=ids, text="x", state="buffered", created_at=at)))
    run(desk.delete(one.id))
    assert run(desk.cards.list("all", "buffered")) == ()
    with pytest.raises(NoteNotFound):
        run(desk.get(one.id))
    with pytest.raises(NoteNotFound):
        run(desk.delete(one.id))


def test_a_note_is_found_by_id_by_its_beginning_and_by_title(desk: Desk) -> None:
    one = desk.create("x", title="The  Title")
    assert run(desk.find(one.id)) == one.id
    assert run(desk.find(one.id[:5].upper())) == one.id
    assert run(desk.find("the title")) == one.id
    for absent in ("", "   ", "nothing", "The", "id", "*"):
        with pytest.raises(NoteNotFound):
            run(desk.find(absent))
    with pytest.raises(NoteNotFound, match="The beginning of an id needs 4 characters at least"):
        run(desk.find(one.id[:3]))
    desk.create("y", title="the title")
    for ambiguous in ("The Title", "id00"):
        with pytest.raises(InvalidRequest, match="2 notes"):
            run(desk.find(ambiguous))


def test_what_is_known_of_a_note(desk: Desk) -> None:
    target = desk.create("---\ntitle: Target\naliases: Alias\n---\nabout [[Nothing]]")
    source = desk.create("[[alias]] and [[target]]", title="Source")
    run(desk.library.read(target.id, "a summary", ("Sun", "warms", "Earth")))
    details = run(desk.get(target.id))
    assert [link.target_id for link in details.links] == [None]
    assert [line.id for line in details.backlinks] == [source.id]
    assert details.summary == "a summary"
    assert {concept.name for concept in details.concepts} == {"Sun", "Earth"}
    assert details.pending is None
    assert run(desk.get(source.id)).pending is not None


def test_files_that_a_note_shows_or_links_to_are_known_however_it_does(desk: Desk) -> None:
    desk.create("x", title="budget.xlsx")
    text = "![[map.png]] ![a](img/my%20photo.jpg) [pdf](paper.pdf) [other](Other.md) [[budget.xlsx]] [w](https://x.org/a.png)"
    details = run(desk.get(desk.create(text).id))
    assert set(details.attachments) == {"map.png", "img/my photo.jpg", "paper.pdf"}
    assert {link.target for link in details.links} == {"Other", "budget.xlsx"}


def test_an_edit_of_something_else_is_refused(desk: Desk) -> None:
    note = desk.create("one")
    edited = run(desk.edit(note.id, text="two", seen=note.content_hash))
    with pytest.raises(NoteChanged, match="changed by something else"):
        run(desk.edit(note.id, text="three", seen=note.content_hash))
    assert run(desk.notes.get(note.id)) == edited


def test_an_edit_loses_to_one_that_comes_between(desk: Desk) -> None:
    note = desk.create("one")

    class Overtaken(type(desk.notes)):  # type: ignore[misc]
        async def replace(self, new: Note, seen: str) -> bool:
            return False

    desk.notes.__class__ = Overtaken
    with pytest.raises(NoteChanged):
        run(desk.edit(note.id, text="two"))


def test_tags_of_the_text_are_told_apart(desk: Desk) -> None:
    note = desk.create("#inside", tags=["outside"])
    assert note.tags == ("inside", "outside")
    assert desk.edit.own_tags(note) == ("outside",)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("\udcff", ""),
        ("a\x1b[31m", "a[31m"),
        ("\x00\x9bx", "x"),
        ("two\nlines", "two-lines"),
        ("👨\u200d👩", "👨\u200d👩"),
    ],
)
def test_a_tag_keeps_no_control_characters_and_no_half_characters(typed: str, kept: str) -> None:
    assert normal_tag(typed) == kept
