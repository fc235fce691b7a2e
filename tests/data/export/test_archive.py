import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.export.archive import FolderArchives, unused_name
from data.importing.folder import FolderImporter
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from domain.entities.conversation import ChatMessage, Conversation
from domain.entities.nataraj import Card
from domain.entities.note import Note, hash_content
from domain.errors import InvalidRequest, UniunError
from tests.memory.clock import HandClock
from tests.memory.faces import MemoryFaces
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary
from tests.memory.notes import MemoryNotes

AT = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = [
    *("../../escape", "/etc/passwd", "..", ".", "", ".hidden", "a/b\\c", "nul\0byte", "line\nbreak", "CON", "com1.txt", "x" * 500),
    *("Ünï", "U\u0308ni\u0308", "ünï", "日" * 200, "🎉", "a:b*c?", "trailing. ", "uniun.json", "~", "-rf", "\u202egnp.exe"),
]  # fmt: skip


def note(number: int, title: str, text: str = "text", tags: tuple[str, ...] = ()) -> Note:
    return Note(
        id=f"n{number:03}",
        title=title[:500],
        text=text,
        tags=tags,
        created_at=AT,
        changed_at=AT,
        content_hash=hash_content(title, text, tags),
    )


def faces_of(library: MemoryLibrary) -> MemoryFaces:
    from tests.fakes import MemoryStore, ScriptedCoordinator
    from tests.memory.chat import knowledge_controller

    return MemoryFaces(library, knowledge_controller(ScriptedCoordinator(), MemoryStore(), library))


def export(faces: MemoryFaces, folder: Path, *, force: bool = False) -> Any:
    asyncio.run(faces.open().archive.export(folder, force=force))
    return json.loads((folder / "uniun.json").read_text(encoding="utf-8"))


def test_everything_is_there(tmp_path: Path) -> None:
    library = MemoryLibrary()
    faces = faces_of(library)

    async def fill() -> None:
        for number in range(250):
            await library.notes.save(
                [note(number, f"Note {number % 200}", "# Heading\n#in\n", ("in", "out"))]
            )
        manas = await library.manases.create("Some")
        await library.manases.add(manas.id, ["n000", "n001"])
        await library.read("n000", "a summary", ("Sun", "warms", "Earth"))
        await faces.conversations.create(
            Conversation(id="c", title="Talk: about", created_at=AT, changed_at=AT)
        )
        for name, parent, role in (("q", None, "user"), ("a", "q", "assistant"), ("b", "q", "assistant")):
            await faces.conversations.put_message(
                ChatMessage.model_validate(
                    {
                        "id": name,
                        "conversation_id": "c",
                        "parent_id": parent,
                        "role": role,
                        "content": f"said {name}",
                        "created_at": AT,
                    }
                )
            )
        await faces.cards.put(
            Card(
                id="k",
                scope=manas.id,
                note_ids=("n000", "n001"),
                text="card",
                state="buffered",
                created_at=AT,
            )
        )

    asyncio.run(fill())
    everything = export(faces, tmp_path / "new" / "folder")
    assert everything["format"] == "uniun-export"
    assert {section: len(everything[section]) for section in everything if isinstance(everything[section], list)} == {
        "notes": 250, "knowledge": 250, "relations": 1, "manases": 1, "conversations": 1, "messages": 3, "cards": 1, "ganas": 0, "runs": 0,
    }  # fmt: skip
    assert [Note.model_validate(each) for each in everything["notes"]] == [
        library.notes.notes[each] for each in sorted(library.notes.notes)
    ]
    assert everything["knowledge"][0]["summary"] == "a summary"
    files = sorted((tmp_path / "new" / "folder" / "notes").iterdir())
    assert len(files) == 250
    assert (tmp_path / "new" / "folder" / "notes" / "Note 7 2.md").exists()
    [talk] = (tmp_path / "new" / "folder" / "conversations").iterdir()
    assert talk.name == "Talk- about.md"
    assert "said q" in talk.read_text()
    assert "said b" in talk.read_text()
    assert talk.read_text().endswith("## Another branch, from: said q\n\n**UNIUN**\n\nsaid a\n")


def test_an_export_can_be_imported(tmp_path: Path) -> None:
    library = MemoryLibrary()
    faces = faces_of(library)
    text = "---\nlooks: like front matter\n---\n# Heading\n\n#in [[Other]]\n"
    original = note(1, "A: 'title'", text, ("in", "out/deep")).model_copy(update={"aliases": ("An alias",)})
    asyncio.run(library.notes.save([original]))
    export(faces, tmp_path)
    notes = MemoryNotes()
    importer = FolderImporter(notes, MarkdownNoteParser(), CountingIdentities(), LocalNoteChanges())
    asyncio.run(importer.run(tmp_path, lambda step: None))
    [copy] = notes.notes.values()
    assert (copy.title, copy.tags, copy.text.strip()) == (
        original.title,
        original.tags,
        original.text.strip(),
    )
    assert copy.created_at == original.created_at
    assert "An alias" in copy.aliases


def test_hostile_titles_stay_in_the_folder(tmp_path: Path) -> None:
    library = MemoryLibrary()
    asyncio.run(library.notes.save([note(number, title) for number, title in enumerate(HOSTILE)]))
    before = set(tmp_path.rglob("*"))
    export(faces_of(library), tmp_path / "out")
    made = set(tmp_path.rglob("*")) - before - {tmp_path / "out", tmp_path / "out" / "notes"}
    assert made == {*(tmp_path / "out" / "notes").iterdir(), tmp_path / "out" / "uniun.json"}
    assert len(made) == len(HOSTILE) + 1


@given(st.lists(st.text(max_size=40) | st.sampled_from(HOSTILE), max_size=20))
def test_names(titles: list[str]) -> None:
    taken: set[str] = set()
    names = [unused_name(title, taken) for title in titles]
    assert len({name.casefold() for name in names}) == len(titles)
    for name in names:
        assert name == os.path.basename(name)
        assert name.endswith(".md")
        assert len(name.encode()) < 200
        assert name.isprintable()
        assert not name.startswith(".")
        assert not set(name) & set('<>:"/\\|?*')


def test_a_folder_that_holds_something_is_refused_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "T.md").symlink_to(tmp_path / "mine.txt")
    library = MemoryLibrary()
    asyncio.run(library.notes.save([note(1, "T", "new")]))
    faces = faces_of(library)
    with pytest.raises(InvalidRequest, match="not empty"):
        export(faces, tmp_path)
    export(faces, tmp_path, force=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert "new" in (tmp_path / "notes" / "T.md").read_text()
    assert not (tmp_path / "notes" / "T.md").is_symlink()
    with pytest.raises(InvalidRequest, match="no folder"):
        export(faces, tmp_path / "mine.txt")


def test_a_linked_folder_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidRequest, match="is a link"):
        export(faces_of(MemoryLibrary()), tmp_path / "out", force=True)


def test_an_export_that_fails_has_no_end(tmp_path: Path) -> None:
    async def fail() -> None:
        async with FolderArchives(HandClock()).create(tmp_path, force=False) as archive:
            await archive.put("notes", [note(1, "T")])
            raise OSError(28, "No space left on device")

    with pytest.raises(UniunError, match="Free some disk space"):
        asyncio.run(fail())
    assert not (tmp_path / "uniun.json").exists()
