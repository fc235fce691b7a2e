import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.clock import SystemClock
from data.importing.folder import BATCH_FILES, FolderImporter
from data.importing.reading import MAX_FILE_BYTES
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from data.rest import Rest
from domain.entities.note import ImportCopy, ImportProgress, ImportReport, Note, NoteSource, UndoneImport
from domain.errors import InvalidRequest
from domain.usecases.importing import UndoImportUseCase
from domain.usecases.notes import DeleteNoteUseCase, EditNoteUseCase
from tests.memory.cards import MemoryCards
from tests.memory.identity import CountingIdentities
from tests.memory.notes import MemoryNotes
from tests.vaults import make_vault, unprivileged

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Where the clock of these tests begins."""


class Importing:
    """An importer over memory, and what it did."""

    def __init__(self) -> None:
        self.notes = MemoryNotes()
        self.announced: list[str] = []
        self.steps: list[ImportProgress] = []
        changes = LocalNoteChanges()
        changes.listen(self.announced.extend)
        self.identities = CountingIdentities(START)
        self.parser = MarkdownNoteParser()
        self.edit = EditNoteUseCase(self.parser, self.notes, self.identities, changes)
        self.importer = FolderImporter(self.notes, self.parser, self.identities, changes)

    def run(self, folder: Path, progress: Callable[[ImportProgress], None] | None = None) -> ImportReport:
        self.steps.clear()
        return asyncio.run(self.importer.run(folder, progress or self.steps.append))

    def by_name(self, name: str) -> Note:
        [note] = [note for note in self.notes.notes.values() if (note.origin or "").endswith(f"/{name}")]
        return note


@pytest.fixture
def importing() -> Importing:
    return Importing()


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.created, report.updated, report.unchanged, report.gone


def problems(report: ImportReport, root: Path) -> dict[str, bool]:
    return {str(Path(problem.path).relative_to(root)): problem.imported for problem in report.problems}


def test_a_vault_with_every_oddity(importing: Importing, open_path: Path) -> None:
    vault = make_vault(open_path / "vault", 300)
    before = {path: path.lstat() for path in sorted(vault.root.rglob("*"))}
    with unprivileged(open_path):
        report = importing.run(vault.root)
    told = problems(report, vault.root)
    assert told == {**dict.fromkeys(vault.flawed, True), **dict.fromkeys(vault.refused, False)}
    assert counts(report) == (vault.imported, 0, 0, 0)
    assert len(importing.notes.notes) == vault.imported
    assert sorted(importing.announced) == sorted(importing.notes.notes)
    assert importing.notes.saves <= vault.imported / BATCH_FILES + 4
    last = importing.steps[-1]
    assert last.done == last.total
    assert [step.done for step in importing.steps] == sorted(step.done for step in importing.steps)

    assert importing.by_name("utf-16.md").title == "UTF-16 ü 日"
    assert importing.by_name("mark.md").title == "Marked"
    assert importing.by_name("large.md").tags == ("large",)
    assert importing.by_name("empty.md").title == "empty"
    assert importing.by_name("latin-1.md").text == "# Caf\ufffd\n\nna\ufffdve"
    assert importing.by_name("broken front matter.md").tags == ("kept",)
    assert all("\r" not in note.text for note in importing.notes.notes.values())

    kept = dict(importing.notes.notes)
    saves = importing.notes.saves
    with unprivileged(open_path):
        again = importing.run(vault.root)
    assert counts(again) == (0, 0, vault.imported, 0)
    assert problems(again, vault.root) == told
    assert importing.notes.notes == kept
    assert importing.notes.saves == saves
    after = {path: path.lstat() for path in sorted(vault.root.rglob("*"))}
    assert {p: (s.st_mtime_ns, s.st_size) for p, s in before.items()} == {
        p: (s.st_mtime_ns, s.st_size) for p, s in after.items()
    }


def test_fifteen_hundred_notes(importing: Importing, tmp_path: Path) -> None:
    make_vault(tmp_path, 1_500, odd=False)
    assert counts(importing.run(tmp_path)) == (1_500, 0, 0, 0)
    assert counts(importing.run(tmp_path)) == (0, 0, 1_500, 0)
    links = [link for note in importing.notes.notes.values() for link in note.links]
    assert len(links) > 1_500
    assert "no" not in links


def test_attachments_are_not_taken_and_counted(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "map.png").write_bytes(b"\x89PNG")
    (tmp_path / "a.md").write_text("![[map.png]] ![](img/MAP.png) [paper](paper.pdf) [b](b.md)")
    (tmp_path / "b.md").write_text("![[map.png]]")
    report = importing.run(tmp_path)
    assert (report.created, report.attachments) == (2, 2)
    assert importing.run(tmp_path).attachments == 0, "it was said with the notes that were new"


def test_a_changed_file_changes_its_note(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("---\ncreated: 2024-05-01\n---\n# One\n#x")
    (tmp_path / "b.md").write_text("stays")
    importing.run(tmp_path)
    old = importing.by_name("a.md")
    status = path.stat()
    path.write_text("---\ncreated: 2024-05-01\n---\n# Two\n#y")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, same time
    assert counts(importing.run(tmp_path)) == (0, 1, 1, 0)
    new = importing.by_name("a.md")
    assert (new.id, new.title, new.tags) == (old.id, "Two", ("y",))
    assert new.created_at == old.created_at
    assert new.changed_at > old.changed_at
    assert new.content_hash != old.content_hash


def test_what_does_not_change_the_content_is_no_new_input(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"# One\nx\n")
    importing.run(tmp_path)
    old = importing.by_name("a.md")
    path.write_bytes(b"# One\r\nx\r\n")
    assert counts(importing.run(tmp_path)) == (0, 1, 0, 0)
    assert importing.by_name("a.md").changed_at == old.changed_at
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 0)


def test_the_name_of_the_file_is_how_links_know_it(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "File Name.md").write_text("# Another title")
    (tmp_path / "b.md").write_text("[[File Name]] [[another TITLE]] [[b]]")
    importing.run(tmp_path)
    target = importing.by_name("File Name.md")
    assert target.aliases == ("File Name",)
    links = asyncio.run(importing.notes.links_from(importing.by_name("b.md").id))
    assert [link.target_id for link in links] == [target.id, target.id, importing.by_name("b.md").id]


def test_a_renamed_file_keeps_its_note(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("only the name is its title")
    importing.run(tmp_path)
    old = importing.by_name("old.md")
    (tmp_path / "sub").mkdir()
    (tmp_path / "old.md").rename(tmp_path / "sub" / "new.md")
    assert counts(importing.run(tmp_path)) == (0, 1, 0, 0)
    new = importing.by_name("new.md")
    assert (new.id, new.title, new.created_at) == (old.id, "new", old.created_at)
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 0)


def test_what_is_ambiguous_is_no_rename(importing: Importing, tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("same")
    importing.run(tmp_path)
    ids = set(importing.notes.notes)
    (tmp_path / "a.md").rename(tmp_path / "c.md")
    (tmp_path / "b.md").rename(tmp_path / "d.md")
    assert counts(importing.run(tmp_path)) == (2, 0, 0, 2)
    assert ids < set(importing.notes.notes)


def test_notes_of_vanished_files_stay(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.md").write_text("a")
    (tmp_path / "b.md").write_text("b")
    importing.run(tmp_path)
    (tmp_path / "b.md").unlink()
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 1)
    assert counts(importing.run(tmp_path / "one")) == (0, 0, 1, 0)
    assert len(importing.notes.notes) == 2
    (tmp_path / "b.md").write_text("b again")
    assert counts(importing.run(tmp_path)) == (0, 1, 1, 0)
    assert len(importing.notes.notes) == 2


def test_a_folder_that_cannot_be_read_loses_nothing(importing: Importing, open_path: Path) -> None:
    folder = open_path / "vault" / "sub"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("a")
    importing.run(open_path / "vault")
    folder.chmod(0)
    with unprivileged(open_path):
        report = importing.run(open_path / "vault")
    assert problems(report, open_path) == {"vault/sub": False}
    assert report.gone == 0
    folder.chmod(0o755)


def test_what_the_user_changed_here_is_not_overwritten(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("as imported")
    importing.run(tmp_path)
    note = importing.by_name("a.md")
    asyncio.run(importing.edit(note.id, text="as edited here"))
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 0)
    path.rename(tmp_path / "b.md")
    assert counts(importing.run(tmp_path)) == (0, 1, 0, 0)
    assert importing.by_name("b.md").text == "as edited here"
    (tmp_path / "b.md").write_text("as edited there")
    report = importing.run(tmp_path)
    assert "both been changed" in report.problems[0].reason
    assert importing.by_name("b.md").text == "as edited here"
    (tmp_path / "b.md").write_text("as edited here")
    assert not importing.run(tmp_path).problems
    (tmp_path / "b.md").write_text("and on")
    assert counts(importing.run(tmp_path)) == (0, 1, 0, 0)
    assert importing.by_name("b.md").text == "and on"


def test_newer_files_are_newer_notes(importing: Importing, tmp_path: Path) -> None:
    for age, name in enumerate(("c", "a", "b")):
        path = tmp_path / f"{name}.md"
        path.write_text(name)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    importing.run(tmp_path)
    lines = asyncio.run(importing.notes.lines())
    assert [line.title for line in lines] == ["c", "a", "b"]
    assert importing.by_name("b.md").created_at.timestamp() == 1_700_000_000 - 2


MAY, JUNE = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("front", "file_time", "times"),
    [
        ("", MAY, (MAY, MAY)),
        ("created: 2024-05-01T00:00:00Z", JUNE, (MAY, JUNE)),
        ("updated: 2024-05-01T00:00:00Z", JUNE, (MAY, MAY)),
        ("created: 2024-05-01T00:00:00Z\nmodified: 2024-06-01T00:00:00Z", START, (MAY, JUNE)),
        ("date: 2024-06-01T00:00:00Z", MAY, (JUNE, JUNE)),
        # No date that everybody reads in the same way, or one that has not come yet.
        ("updated: 05/06/2024\ncreated: 05/06/2024", MAY, (MAY, MAY)),
        ("updated: 2999-01-01\ncreated: 9999-12-31", MAY, (MAY, MAY)),
        ("updated: 9999999-01-01", MAY, (MAY, MAY)),
    ],
)
def test_a_note_is_as_old_as_its_file_says(
    front: str,
    file_time: datetime,
    times: tuple[datetime, datetime],
    importing: Importing,
    tmp_path: Path,
) -> None:
    (tmp_path / "a.md").write_text(f"---\n{front}\n---\ntext")
    os.utime(tmp_path / "a.md", (file_time.timestamp(), file_time.timestamp()))
    importing.run(tmp_path)
    note = importing.by_name("a.md")
    assert (note.created_at, note.changed_at) == times
    # A file that is touched, as by a synchroniser, has not changed.
    os.utime(tmp_path / "a.md", (JUNE.timestamp(), JUNE.timestamp()))
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 0)
    assert importing.by_name("a.md") == note


@pytest.mark.parametrize("seconds", [2**40, 2**34])
def test_a_file_of_the_future_is_of_now(seconds: int, importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nupdated: soon\n---\ntext")
    os.utime(tmp_path / "a.md", (seconds, seconds))
    importing.run(tmp_path)
    note = importing.by_name("a.md")
    assert START < note.created_at == note.changed_at <= importing.identities.at
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 0), "also where it is read again for its flaw"


@pytest.mark.parametrize(("key", "what"), [("created", "begun"), ("updated", "changed")])
def test_a_time_that_is_still_to_come_is_not_taken_and_told_of(
    key: str, what: str, importing: Importing, tmp_path: Path
) -> None:
    (tmp_path / "one.md").write_text("Text.")
    importing.run(tmp_path)
    before = importing.by_name("one.md")
    (tmp_path / "one.md").write_text(f"---\n{key}: 2099-01-01\n---\nText.")
    for _ in range(2):  # it is told of as long as it is so
        [problem] = importing.run(tmp_path).problems
        assert problem.imported
        assert problem.path.endswith("one.md")
        assert f"it was {what} on 2099-01-01, which is still to come" in problem.reason
    assert (importing.by_name("one.md").created_at, importing.by_name("one.md").changed_at) == (
        before.created_at,
        before.changed_at,
    )


def test_a_changed_file_is_changed_when_it_was_written(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for text, time in (("one", MAY), ("two", JUNE)):
        path.write_text(text)
        os.utime(path, (time.timestamp(), time.timestamp()))
        importing.run(tmp_path)
    note = importing.by_name("a.md")
    assert (note.text, note.created_at, note.changed_at) == ("two", MAY, JUNE)


def test_a_time_that_is_corrected_alone_is_the_notes_time(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for front, times in (
        ("created: 2024-06-01\nupdated: 2024-06-01", (JUNE, JUNE)),
        ("created: 2024-05-01\nupdated: 2024-06-01", (MAY, JUNE)),
        ("created: 2024-05-01\nupdated: 2024-05-01", (MAY, MAY)),
        ("created: 2024-05-01", (MAY, MAY)),
        ("updated: 2024-06-01", (MAY, JUNE)),
    ):
        path.write_text(f"---\n{front}\n---\ntext")
        assert counts(importing.run(tmp_path))[2] == 0
        note = importing.by_name("a.md")
        assert (note.created_at, note.changed_at) == times


def test_links_out_of_the_folder_are_followed_once(importing: Importing, tmp_path: Path) -> None:
    vault, outside = tmp_path / "vault", tmp_path / "outside"
    vault.mkdir()
    outside.mkdir()
    (outside / "far.md").write_text("far")
    (outside / "back").symlink_to(vault)
    (outside / "self").symlink_to(outside)
    for name in ("x", "y"):
        (vault / name).symlink_to(outside)
    (vault / "file.md").symlink_to(outside / "far.md")
    report = importing.run(vault)
    assert sorted(Path(note.origin or "").name for note in importing.notes.notes.values()) == [
        "far.md",
        "file.md",
    ]
    assert all("link" in problem.reason for problem in report.problems)


def test_a_name_that_is_no_text(importing: Importing, tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.md", "w") as file:
        file.write("x")
    assert counts(importing.run(tmp_path)) == (1, 0, 0, 0)
    assert counts(importing.run(tmp_path)) == (0, 0, 1, 0)
    assert importing.by_name("caf\\xe9.md").title == "caf\\xe9"


def test_the_limit_of_a_file_is_told(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "max.md").write_bytes(b"x" * MAX_FILE_BYTES)
    (tmp_path / "more.md").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    report = importing.run(tmp_path)
    assert report.created == 1
    assert "10 MB" in report.problems[0].reason


def test_a_cancelled_import_keeps_what_it_has(importing: Importing, tmp_path: Path) -> None:
    make_vault(tmp_path, 350, odd=False)

    async def cancel_on_the_way() -> None:
        def look(step: ImportProgress) -> None:
            if step.done == 250:
                task.cancel()

        task = asyncio.create_task(importing.importer.run(tmp_path, look))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_on_the_way())
    kept = len(importing.notes.notes)
    assert kept == 200
    assert counts(importing.run(tmp_path)) == (150, 0, 200, 0)


def test_an_import_lets_an_answer_go_first_and_says_so(importing: Importing, tmp_path: Path) -> None:
    make_vault(tmp_path, 350, odd=False)
    looks = iter([False, True, True, True])
    """None waits before the first batch; an answer goes before the second, and is over at the third look of the rest."""
    saved: list[int] = []

    async def sleep(seconds: float) -> None:
        saved.append(len(importing.notes.notes))

    importing.importer = FolderImporter(
        importing.notes,
        importing.parser,
        importing.identities,
        LocalNoteChanges(),
        Rest(lambda: next(looks, False), SystemClock(), sleep),
    )
    assert counts(importing.run(tmp_path)) == (350, 0, 0, 0)
    assert saved == [BATCH_FILES] * 2
    [resting] = [step for step in importing.steps if step.rests]
    assert (resting.done, resting.total, resting.taken) == (BATCH_FILES, 350, BATCH_FILES)


class CancelledAtSave(MemoryNotes):
    """Somebody cancels while a batch is being saved, which the database carries out whole."""

    def __init__(self) -> None:
        super().__init__()
        self.task: asyncio.Task[ImportReport] | None = None

    async def save(self, notes: Sequence[Note], *, extract: bool = True) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.sleep(0)
        await super().save(notes, extract=extract)


def test_what_was_saved_while_it_was_cancelled_is_told_and_can_be_taken_back(tmp_path: Path) -> None:
    make_vault(tmp_path, 150, odd=False)
    notes, steps, announced = CancelledAtSave(), list[ImportProgress](), list[str]()
    changes = LocalNoteChanges()
    changes.listen(announced.extend)
    importer = FolderImporter(notes, MarkdownNoteParser(), CountingIdentities(), changes)

    async def cancel() -> None:
        notes.task = asyncio.create_task(importer.run(tmp_path, steps.append))
        with pytest.raises(asyncio.CancelledError):
            await notes.task

    asyncio.run(cancel())
    added = {key: value for step in steps for key, value in step.added.items()}
    assert added == {note.id: note.content_hash for note in notes.notes.values()}
    assert steps[-1].taken == len(announced) == BATCH_FILES
    undo = UndoImportUseCase(notes, DeleteNoteUseCase(notes, MemoryCards()))
    assert asyncio.run(undo(added)) == UndoneImport(deleted=BATCH_FILES, kept=0)
    assert asyncio.run(notes.deleted_origins()) == {}, "the next import takes them again"


def test_what_came_from_a_folder(importing: Importing, tmp_path: Path) -> None:
    for folder in ("one", "one too"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.md").write_text(folder)
    (tmp_path / "one" / "b.md").write_text("b")
    importing.run(tmp_path)
    changed, kept = importing.by_name("one/a.md"), importing.by_name("one/b.md")
    asyncio.run(importing.edit(changed.id, text="Mine now."))
    (tmp_path / "link").symlink_to(tmp_path / "one")
    for folder in ("one", "one/", "link"):
        came = asyncio.run(importing.importer.came_from(tmp_path / folder))
        assert came == {changed.id: changed.content_hash, kept.id: kept.content_hash}
    shutil.rmtree(tmp_path / "one")
    assert len(asyncio.run(importing.importer.came_from(tmp_path / "one"))) == 2
    with pytest.raises(InvalidRequest, match="The folder"):
        asyncio.run(importing.importer.came_from(Path("nul\0byte")))


def test_the_same_from_another_folder_is_told_and_can_be_undone(importing: Importing, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for number in range(3):
            (tmp_path / folder / f"{number}.md").write_text(f"# Note {number}\n\nText.")
    (tmp_path / "two" / "more.md").write_text("Only here.")
    assert importing.run(tmp_path / "one").copies == ()
    again = importing.run(tmp_path / "two")
    assert (again.created, len(again.copies), len(again.added)) == (4, 3, 4)
    first = importing.by_name("one/0.md")
    assert again.copies[0] == ImportCopy(
        path=str(tmp_path / "two" / "0.md"), note_id=first.id, title="Note 0"
    )
    assert importing.steps[-1].taken == 4
    changed = importing.by_name("two/2.md")
    asyncio.run(importing.edit(changed.id, text="Mine now."))
    undo = UndoImportUseCase(importing.notes, DeleteNoteUseCase(importing.notes, MemoryCards()))
    assert asyncio.run(undo(again.added)) == UndoneImport(deleted=3, kept=1)
    assert {(note.origin or "")[-9:] for note in importing.notes.notes.values()} == {
        *(f"/one/{number}.md"[-9:] for number in range(3)),
        "/two/2.md",
    }


@pytest.mark.parametrize("source", ["typed", "nataraj", "gana"])
def test_what_was_written_here_is_recognised_and_left_alone(
    importing: Importing, tmp_path: Path, source: NoteSource
) -> None:
    """By its text alone: a file is called something else, and ends in a line break."""
    written = Note(
        id="w",
        title="Call Anna tomorrow.",
        text="Call Anna tomorrow.\nOr on Sunday.",
        source=source,
        created_at=importing.identities.now(),
        changed_at=importing.identities.now(),
        content_hash="w",
    )
    empty = written.model_copy(update={"id": "e", "text": ""})
    asyncio.run(importing.notes.save([written, empty]))
    (tmp_path / "anna.md").write_text("---\ntags: [people]\n---\n\nCall Anna tomorrow.\nOr on Sunday.\n")
    (tmp_path / "empty.md").write_text("\n")
    report = importing.run(tmp_path)
    assert report.created == 2
    assert report.copies == (ImportCopy(path=str(tmp_path / "anna.md"), note_id="w", title=written.title),)
    assert importing.notes.notes["w"] == written
    assert importing.run(tmp_path).copies == (), "it was told"
    (tmp_path / "empty.md").write_text("Call Anna tomorrow.\nOr on Sunday.")
    assert importing.run(tmp_path).copies == (), "a note that was there before"


@pytest.mark.parametrize("name", ["absent", "file.md", "nul\0byte"])
def test_what_is_no_folder_is_refused(name: str, importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "file.md").write_text("x")
    with pytest.raises(InvalidRequest, match="The folder"):
        importing.run(tmp_path / name)


def test_a_deleted_note_stays_deleted_until_its_file_changes(importing: Importing, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.md").write_text(f"Text of {name}.")
    importing.run(tmp_path)
    for name in ("one", "two"):
        asyncio.run(importing.notes.delete(importing.by_name(f"{name}.md").id))
    for _ in range(2):
        report = importing.run(tmp_path)
        assert (*counts(report), report.deleted) == (0, 0, 1, 0, 2)
    (tmp_path / "one.md").write_text("One has changed.")
    report = importing.run(tmp_path)
    assert (*counts(report), report.deleted) == (1, 0, 1, 0, 1)
    report = asyncio.run(importing.importer.run(tmp_path, importing.steps.append, deleted_too=True))
    assert (*counts(report), report.deleted) == (1, 0, 2, 0, 0)
    assert importing.by_name("two.md").text == "Text of two."
    report = importing.run(tmp_path)
    assert (*counts(report), report.deleted) == (0, 0, 3, 0, 0)


def test_a_conflict_is_solved_by_deleting_the_note(importing: Importing, tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("First.")
    importing.run(tmp_path)
    note = importing.by_name("one.md")
    asyncio.run(importing.edit(note.id, text="Changed here."))
    (tmp_path / "one.md").write_text("Changed there.")
    assert problems(importing.run(tmp_path), tmp_path) == {"one.md": False}
    asyncio.run(importing.notes.delete(note.id))
    importing.run(tmp_path)
    assert importing.by_name("one.md").text == "Changed there."
