import asyncio
import errno
import io
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data.importing import uploads
from data.importing.folder import FolderImporter
from data.importing.uploads import UploadFolder
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from domain.entities.note import ImportReport
from domain.errors import InvalidRequest
from domain.repositories.uploads import UploadedFile
from domain.usecases.importing import ImportUploadUseCase
from tests.memory.identity import CountingIdentities
from tests.memory.notes import MemoryNotes


@dataclass(eq=False)
class Sent:
    """Implements `UploadedFile`."""

    name: str
    data: bytes

    def size(self) -> int:
        return len(self.data)

    async def save(self, path: Path) -> None:
        await asyncio.to_thread(path.write_bytes, self.data)


class Desk:
    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.notes = MemoryNotes()
        importer = FolderImporter(self.notes, MarkdownNoteParser(), CountingIdentities(), LocalNoteChanges())
        self._import = ImportUploadUseCase(UploadFolder(data_dir), importer)

    def send(self, *files: UploadedFile) -> ImportReport:
        report = asyncio.run(self._import(files))
        assert not (self.data_dir / "uploads").exists()
        return report

    def texts(self) -> set[str]:
        return {note.text.strip() for note in self.notes.notes.values()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def packed(members: Sequence[tuple[str | zipfile.ZipInfo, str]], **how: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **how) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return out.getvalue()


def test_files_and_an_archive_become_notes_once(desk: Desk) -> None:
    vault = Sent("My vault.zip", packed([("a/One.md", "one"), ("a/pic.png", "x"), ("Two.MD", "two")]))
    report = desk.send(vault)
    assert (report.created, report.problems) == (2, ())
    assert desk.texts() == {"one", "two"}
    assert desk.send(vault).unchanged == 2
    newer = Sent("My vault.zip", packed([("a/One.md", "one, longer")]))
    report = desk.send(newer)
    assert (report.created, report.updated, report.gone) == (0, 1, 1)
    report = desk.send(Sent("loose.md", b"loose"), Sent("notes.txt", b"?"), vault)
    assert (report.created, report.gone) == (3, 0)
    assert [(p.path, p.imported) for p in report.problems] == [("notes.txt", False)]


def test_nothing_leaves_its_folder(desk: Desk, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    report = desk.send(
        Sent(
            "evil.zip",
            packed(
                [
                    ("../../out.md", "no"),
                    ("/etc/out.md", "no"),
                    ("..\\..\\out.md", "no"),
                    ("C:\\out.md", "no"),
                    (link, "/etc/passwd"),
                    ("x" * 300 + ".md", "no"),
                    (".obsidian/hidden.md", "no"),
                    ("__MACOSX/._a.md", "no"),
                    ("good.md", "good"),
                ]
            ),
        )
    )
    assert desk.texts() == {"good"}
    assert len(report.problems) == 6
    assert all(not problem.imported for problem in report.problems)
    assert {path.name for path in tmp_path.iterdir()} == set()


def test_a_sender_may_call_a_file_anything(desk: Desk) -> None:
    names = [
        "../../up.md",
        "/abs.md",
        "..\\w.md",
        ".hidden.md",
        "\0.md",
        "..",
        "a" * 400 + ".md",
        "ж" * 300 + ".md",
    ]
    report = desk.send(*(Sent(name, f"{at}".encode()) for at, name in enumerate(names)))
    assert report.created == 7
    assert [problem.path for problem in report.problems] == [".."]


def test_two_files_of_one_name_are_two_notes(desk: Desk) -> None:
    report = desk.send(Sent("a.md", b"1"), Sent("a.md", b"2"), Sent("a.md", b"1"))
    assert report.created == 2
    assert [(problem.path, problem.reason) for problem in report.problems] == [
        ("a.md", "Another of the files has the same name and the same text.")
    ]
    report = desk.send(Sent("a.md", b"3"))
    assert (report.created, report.updated, report.gone, report.gone_files) == (1, 0, 0, ())
    assert desk.texts() == {"1", "2", "3"}
    assert {note.title for note in desk.notes.notes.values()} == {"a"}
    assert desk.send(Sent("a.md", b"2")).unchanged == 1


def test_what_is_odd_is_told_by_the_name_that_was_sent(desk: Desk) -> None:
    desk.send(Sent("first.md", b"the same"))
    report = desk.send(Sent("a:b.md", b"\xff"), Sent("other.md", b"---\ntitle: first\n---\nthe same"))
    assert [problem.path for problem in report.problems] == ["a:b.md"]
    assert [copy.path for copy in report.copies] == ["other.md"]


def test_a_file_of_an_archive_is_as_old_as_that_says(desk: Desk) -> None:
    old = zipfile.ZipInfo("old.md", (2019, 5, 1, 12, 0, 0))
    odd = zipfile.ZipInfo("odd.md", (2019, 13, 1, 12, 0, 0))
    desk.send(Sent("vault.zip", packed([(old, "old"), (odd, "odd")])))
    notes = {note.text: note for note in desk.notes.notes.values()}
    assert notes["old"].changed_at.astimezone().strftime("%Y-%m-%d %H:%M") == "2019-05-01 12:00"
    assert notes["odd"].changed_at.year > 2019


def test_a_bomb_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UNPACKED_BYTES", 1_000_000)
    bomb = packed([(f"{number}.md", "0" * 400_000) for number in range(5)])
    assert len(bomb) < 10_000
    with pytest.raises(InvalidRequest, match="more than 1 MB of notes"):
        desk.send(Sent("bomb.zip", bomb))
    monkeypatch.setattr(uploads, "MAX_UNPACKED_FILES", 3)
    with pytest.raises(InvalidRequest, match="more than 3 notes"):
        desk.send(Sent("many.zip", packed([(f"{number}.md", "x") for number in range(5)])))
    assert desk.texts() == set()


def test_what_an_archive_says_of_its_sizes_is_not_believed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(packed([("a.md", "0" * 300_000)]))
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = data.index(signature) + offset
        data[at : at + 4] = (10).to_bytes(4, "little")
    report = desk.send(Sent("liar.zip", bytes(data)))
    assert report.created == 0
    assert [problem.path for problem in report.problems] == ["a.md"]


def test_a_table_of_contents_without_end_is_not_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_MAX_DIRECTORY_BYTES", 1_000)
    with pytest.raises(InvalidRequest, match="lists too many files"):
        desk.send(Sent("list.zip", packed([(f"{number}.txt", "") for number in range(100)])))


@pytest.mark.parametrize(
    "data", [b"", b"no archive", b"PK\x05\x06" + b"\xff" * 18, packed([("a.md", "x")])[:-30]]
)
def test_a_damaged_archive_says_so(desk: Desk, data: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"The archive a\.zip"):
        desk.send(Sent("a.zip", data))


def test_a_damaged_member_is_named_and_the_others_are_imported(desk: Desk) -> None:
    data = bytearray(packed([("bad.md", "the same words " * 20), ("good.md", "good")]))
    at = data.index(b"bad.md") + len("bad.md")
    data[at : at + 4] = b"\xff\xff\xff\xff"
    report = desk.send(Sent("half.zip", bytes(data)))
    assert desk.texts() == {"good"}
    assert [problem.path for problem in report.problems] == ["bad.md"]


def test_a_member_that_no_file_system_takes_is_named_and_the_others_are_imported(desk: Desk) -> None:
    members = [
        ("a.md", "one"),
        ("a.md/inside.md", "below a file"),
        ("b.md/inside.md", "two"),
        ("b.md", "where a folder is"),
        (f"{'long' * 40}/" * 40 + "c.md", "a path beyond the limit"),
        ("d.md", "three"),
    ]
    report = desk.send(Sent("vault.zip", packed(members)))
    assert desk.texts() == {"one", "two", "three"}
    assert [problem.path for problem in report.problems] == [members[at][0][:500] for at in (1, 3, 4)]
    assert not any(str(desk.data_dir) in problem.reason for problem in report.problems)


def test_too_much_is_refused_before_it_is_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOADED_FILES", 2)
    with pytest.raises(InvalidRequest, match="3 files are more than 2"):
        desk.send(*(Sent(f"{number}.md", b"") for number in range(3)))
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 1_000_000)
    with pytest.raises(InvalidRequest, match="more than 1 MB"):
        desk.send(Sent("a.md", b"x" * 1_000_001))


class SentToFullDisk(Sent):
    async def save(self, path: Path) -> None:
        await asyncio.to_thread(Path("/dev/full").write_bytes, self.data)


def fails_for_want_of_space(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("archive", [False, True])
def test_a_full_disk_is_told_as_such_and_nothing_stays(
    desk: Desk, archive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads._Unpacking, "_write", fails_for_want_of_space)
    sent = Sent("notes.zip", packed([("a.md", "A")])) if archive else SentToFullDisk("a.md", b"A")
    with pytest.raises(
        InvalidRequest, match=r"could not be put into .*uploads.*No space left.*Free some space"
    ):
        desk.send(sent)
    assert not (desk.data_dir / "uploads").exists()
    assert desk.texts() == set()
