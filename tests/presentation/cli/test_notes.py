import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from domain.entities.note import Note
from domain.errors import InvalidRequest, NoteNotFound, UniunError
from presentation.cli.app import build_app
from presentation.cli.importing import import_folder
from tests.fakes import MemoryStore, ScriptedCoordinator, fake_openers
from tests.memory.chat import knowledge_controller
from tests.memory.faces import MemoryFaces, NoBackups
from tests.memory.library import MemoryLibrary
from tests.vaults import make_vault


@pytest.fixture
def faces() -> MemoryFaces:
    library = MemoryLibrary()
    return MemoryFaces(library, knowledge_controller(ScriptedCoordinator(), MemoryStore(), library))


def uniun(faces: MemoryFaces, *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(build_app(fake_openers(faces=faces)), list(arguments), input=text)


def only(faces: MemoryFaces) -> Note:
    [note] = faces.library.notes.notes.values()
    return note


def test_import_reports_what_it_did(faces: MemoryFaces, tmp_path: Path) -> None:
    vault = make_vault(tmp_path / "vault", 20)
    (vault.root / "odd" / "large.md").unlink()
    first = uniun(faces, "notes", "import", str(vault.root))
    assert first.exit_code == 0
    assert first.stdout.startswith(f"{len(faces.library.notes.notes)} new, 0 changed, 0 as before, ")
    for name in vault.flawed:
        assert f"{name}: " in first.stderr
    assert "picture.md: It is no text" in first.stderr
    assert "(not imported)" in first.stderr
    again = uniun(faces, "notes", "import", str(vault.root))
    assert again.stdout.startswith("0 new, 0 changed, ")


def test_an_import_tells_which_note_says_the_same(faces: MemoryFaces, tmp_path: Path) -> None:
    uniun(faces, "notes", "add", "Call Anna tomorrow.")
    (tmp_path / "anna.md").write_text("Call Anna tomorrow.\n")
    told = uniun(faces, "notes", "import", str(tmp_path))
    assert (
        told.stdout
        == "1 new, 0 changed, 0 as before, 1 of the new ones word for word like a note that you have\n"
    )
    [written] = [each for each in faces.library.notes.notes.values() if each.source == "typed"]
    assert f"anna.md: Call Anna tomorrow. ({written.id[:12]}) says the same" in told.stderr
    for number in range(12):
        (tmp_path / f"{number}.md").write_text("Call Anna tomorrow.")
    assert uniun(faces, "notes", "import", str(tmp_path)).stderr.count("says the same") == 10


def test_the_summary_counts_one_as_one(faces: MemoryFaces, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.md").write_text(name)
    uniun(faces, "notes", "import", str(tmp_path))
    (tmp_path / "a.md").unlink()
    uniun(faces, "notes", "rm", "b", "--yes")
    (tmp_path / "odd.md").write_bytes(b"\xff")
    assert uniun(faces, "notes", "import", str(tmp_path)).stdout == (
        "1 new, 0 changed, 2 as before, 1 gone, whose note stays, 1 left out, whose note you deleted (take it with "
        "--deleted), 1 with a problem\n"
    )


def test_what_came_from_a_folder_can_be_taken_back(faces: MemoryFaces, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.md").write_text(f"Text of {name}.")
    uniun(faces, "notes", "add", "typed")
    uniun(faces, "notes", "import", str(tmp_path))
    uniun(faces, "notes", "tag", "two", "mine")
    unsure = uniun(faces, "notes", "import", str(tmp_path), "--undo")
    assert isinstance(unsure.exception, InvalidRequest)
    assert "whether to delete 3 notes" in str(unsure.exception)
    undone = uniun(faces, "notes", "import", str(tmp_path), "--undo", "--yes")
    assert undone.stdout == "2 notes are deleted. 1 was changed since, and stays.\n"
    assert sorted(note.title for note in faces.library.notes.notes.values()) == ["two", "typed"]
    again = uniun(faces, "notes", "import", str(tmp_path))
    assert again.stdout == "2 new, 0 changed, 1 as before\n"
    nothing = uniun(faces, "notes", "import", str(tmp_path / "absent"), "--undo", "--yes")
    assert nothing.exit_code == 1
    assert "no note came from" in nothing.stderr
    both = uniun(faces, "notes", "import", str(tmp_path), "--undo", "--watch")
    assert isinstance(both.exception, InvalidRequest)


def test_a_stopped_import_says_what_it_took_and_how_to_take_it_back(
    faces: MemoryFaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"Text of {name}.")
    tasks: list[asyncio.Task[bool]] = []
    save = faces.library.notes.save

    async def stop(notes: Sequence[Note], *, extract: bool = True) -> None:
        tasks[0].cancel()
        await save(notes, extract=extract)

    monkeypatch.setattr(faces.library.notes, "save", stop)

    async def main() -> None:
        library = fake_openers(faces=faces).library
        tasks.append(asyncio.create_task(import_folder(library, tmp_path, watch=False, deleted_too=False)))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    asyncio.run(main())
    told = " ".join(capsys.readouterr().err.split())
    assert "2 new, 0 changed before it was stopped. Importing again goes on from there." in told
    assert f"uniun notes import {tmp_path} --undo" in told


def test_an_import_of_nothing_is_1(faces: MemoryFaces, tmp_path: Path) -> None:
    empty = uniun(faces, "notes", "import", str(tmp_path))
    assert empty.exit_code == 1
    assert "no Markdown file" in empty.stderr
    (tmp_path / "binary.md").write_bytes(b"\0")
    bad = uniun(faces, "notes", "import", str(tmp_path))
    assert bad.exit_code == 1
    assert "binary.md" in bad.stderr
    assert isinstance(uniun(faces, "notes", "import", str(tmp_path / "absent")).exception, InvalidRequest)


def test_add_from_an_argument_and_from_stdin(faces: MemoryFaces) -> None:
    added = uniun(faces, "notes", "add", "# Title\x1b[2J\n#x", "--tag", "Y")
    assert added.stdout == "Title [2J (id0001) is kept.\n"
    assert only(faces).tags == ("x", "y")
    assert faces.announced == ["id0001"]
    for arguments in (["-"], []):
        uniun(faces, "notes", "add", *arguments, text="from stdin")
    assert [note.text for note in faces.library.notes.notes.values()][1:] == ["from stdin"] * 2
    assert isinstance(uniun(faces, "notes", "add", " ").exception, InvalidRequest)


def editor(folder: Path, code: str) -> str:
    script = folder / "editor.py"
    script.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n{code}\n")
    return f"'{sys.executable}' '{script}' --wait"


def test_edit_goes_through_the_editor(
    faces: MemoryFaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uniun(faces, "notes", "add", "old text", "--title", "T")
    monkeypatch.setenv("VISUAL", editor(tmp_path, "path.write_text(path.read_text().replace('old', 'new'))"))
    assert uniun(faces, "notes", "edit", "t").stdout == "T (id0001) is saved.\n"
    assert only(faces).text == "new text"


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("path.write_text('---\\ntitle: a: b\\n---\\nmuch work')", InvalidRequest, "cannot be read"),
        ("path.write_text('much work'); sys.exit(3)", UniunError, "status 3"),
    ],
)
def test_what_was_written_is_never_thrown_away(
    code: str,
    kind: type[Exception],
    reason: str,
    faces: MemoryFaces,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uniun(faces, "notes", "add", "old text", "--title", "T")
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    failed = uniun(faces, "notes", "edit", "T")
    assert isinstance(failed.exception, kind)
    assert reason in str(failed.exception)
    kept = failed.stderr.partition("what you wrote is in ")[2].strip(" .\n")
    assert "much work" in Path(kept).read_text()
    assert only(faces).text == "old text"


def test_an_editor_that_is_none(faces: MemoryFaces, monkeypatch: pytest.MonkeyPatch) -> None:
    uniun(faces, "notes", "add", "text", "--title", "T")
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    failed = uniun(faces, "notes", "edit", "T")
    assert isinstance(failed.exception, InvalidRequest)
    assert "Set EDITOR" in str(failed.exception)


def test_an_import_tells_once_of_attachments(faces: MemoryFaces, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("![](map.png) [paper](paper.pdf)")
    first = uniun(faces, "notes", "import", str(tmp_path)).stdout
    assert first == "1 new, 0 changed, 0 as before, 2 attachments not taken (UNIUN keeps text only)\n"
    assert "attachment" not in uniun(faces, "notes", "import", str(tmp_path)).stdout


def test_show(faces: MemoryFaces) -> None:
    text = "#a [[Other]] ![[map.PNG]] [[None]]"
    uniun(faces, "notes", "add", text, "--title", "T")
    uniun(faces, "notes", "add", "back to [[T]]", "--title", "Other")
    asyncio.run(faces.library.read("id0001", "In short.", ("Sun", "warms", "Earth")))
    shown = uniun(faces, "notes", "show", "T").stdout
    for line in (
        "title: T",
        "id: id0001",
        "tags: #a",
        "links: Other, None (no such note)",
        "attachments: map.PNG (UNIUN takes no attachments yet)",
        "linked from: Other",
        "concepts: Earth, Sun",
        "summary: In short.",
        "reading: done",
    ):
        assert f"{line}\n" in shown
    assert shown.endswith(f"\n\n{text}\n")
    assert "reading: waits to be read" in uniun(faces, "notes", "show", "Other").stdout
    assert uniun(faces, "notes", "show", "T", "--raw").stdout == f"{text}\n"
    assert isinstance(uniun(faces, "notes", "show", "absent").exception, NoteNotFound)


def test_list_search_and_tags(faces: MemoryFaces) -> None:
    nothing = uniun(faces, "notes", "list")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "uniun notes import" in nothing.stderr
    for number in range(3):
        uniun(faces, "notes", "add", f"word{number} sea", "--title", f"N{number}", "-t", f"t/{number}")
    listed = uniun(faces, "notes", "list", "--limit", "2")
    assert [line.split()[2:] for line in listed.stdout.splitlines()] == [["N2", "#t/2"], ["N1", "#t/1"]]
    assert "3 notes in all" in listed.stderr
    assert len(uniun(faces, "notes", "list", "--tag", "T").stdout.splitlines()) == 3
    uniun(faces, "notes", "manas", "create", "Empty")
    assert "no note fits" in uniun(faces, "notes", "list", "--manas", "Empty").stderr
    narrowed = uniun(faces, "notes", "list", "--tag", "t/0", "--limit", "1")
    assert narrowed.stderr == ""
    uniun(faces, "notes", "tag", "N1", "t/0")
    narrowed = uniun(faces, "notes", "list", "--tag", "t/0", "--limit", "1")
    assert "the newest 1; there are 2 of these notes" in narrowed.stderr
    for asked in (["list"], ["search", "sea"]):
        unknown = uniun(faces, "notes", *asked, "--tag", "u")
        assert isinstance(unknown.exception, InvalidRequest)
        assert "No note has the tag u." in str(unknown.exception)
    found = uniun(faces, "notes", "search", "word1", "sea")
    assert "N1" in found.stdout
    assert "word1 sea" in found.stdout
    assert "nothing was found" in uniun(faces, "notes", "search", "absent").stderr
    blind = uniun(faces, "notes", "search", "sea", "--mode", "both")
    assert "3 notes cannot be found by meaning yet" in blind.stderr
    assert uniun(faces, "notes", "embed").stdout == "3 notes embedded.\n"
    assert uniun(faces, "notes", "embed").stdout == "Every note is embedded.\n"
    assert uniun(faces, "notes", "search", "sea", "--mode", "meaning").stdout.count("N") == 3
    near = uniun(faces, "notes", "search", "sea sea zzzzqq", "--mode", "both")
    assert "no note has these words; what follows is close in meaning" in near.stderr
    assert near.stdout.count("N") == 3
    assert "no note has" not in uniun(faces, "notes", "search", "sea", "--mode", "both").stderr
    assert "     2  #t/0\n" in uniun(faces, "notes", "tags").stdout


def test_tag_and_rm(faces: MemoryFaces) -> None:
    uniun(faces, "notes", "add", "text", "--title", "T")
    assert uniun(faces, "notes", "tag", "T", "a", "b").stdout == "T (id0001) has #a #b.\n"
    assert uniun(faces, "notes", "tag", "T", "-r", "a", "--remove", "b").stdout == "T (id0001) has no tags.\n"
    assert isinstance(uniun(faces, "notes", "tag", "T").exception, InvalidRequest)
    unsure = uniun(faces, "notes", "rm", "T")
    assert isinstance(unsure.exception, InvalidRequest)
    assert "T (id0001)" in str(unsure.exception)
    assert "--yes" in str(unsure.exception)
    assert isinstance(uniun(faces, "notes", "rm", "nosuch").exception, NoteNotFound)
    assert uniun(faces, "notes", "rm", "T", "--yes").stdout == "T (id0001) is deleted.\n"
    assert faces.library.notes.notes == {}


def test_a_file_that_was_changed_too_is_taken_when_its_note_is_deleted(
    faces: MemoryFaces, tmp_path: Path
) -> None:
    file = tmp_path / "one.md"
    file.write_text("First.")
    uniun(faces, "notes", "import", str(tmp_path))
    uniun(faces, "notes", "tag", "one", "mine")
    file.write_text("Changed there.")
    assert "delete the note and import again" in uniun(faces, "notes", "import", str(tmp_path)).stderr
    gone = uniun(faces, "notes", "rm", "one", "--yes").stderr
    assert f"{file} stays. An import takes it again if it has changed since it was last imported" in gone
    assert uniun(faces, "notes", "import", str(tmp_path)).stdout.startswith("1 new, 0 changed")


def test_a_restore_replaces_nothing_unasked(faces: MemoryFaces, tmp_path: Path) -> None:
    unsure = str(uniun(faces, "restore", str(tmp_path / "b")).exception)
    assert "in the place of all notes" in unsure
    assert "--yes" in unsure
    assert "pg_restore" in str(uniun(faces, "restore", str(tmp_path / "b"), "-y").exception)


def test_a_restore_that_is_refused_is_not_asked_about(
    faces: MemoryFaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(self: NoBackups, source: Path) -> None:
        raise InvalidRequest("UNIUN is open.")

    monkeypatch.setattr(NoBackups, "check", check)
    assert str(uniun(faces, "restore", str(tmp_path / "b")).exception) == "UNIUN is open."


def test_manases(faces: MemoryFaces) -> None:
    assert "There is no Manas yet" in uniun(faces, "notes", "manas", "list").stdout
    uniun(faces, "notes", "add", "sea", "--title", "N1", "-t", "x")
    uniun(faces, "notes", "add", "sea", "--title", "N2")
    assert uniun(faces, "notes", "manas", "create", "Water").stdout.startswith("Water is created.")
    assert uniun(faces, "notes", "manas", "add", "Water", "N1").stdout == "Water has 1 note.\n"
    assert uniun(faces, "notes", "manas", "add", "Water", "--search", "sea").stdout == "Water has 2 notes.\n"
    assert uniun(faces, "notes", "manas", "remove", "Water", "--tag", "x").stdout == "Water has 1 note.\n"
    assert "     1  Water" in uniun(faces, "notes", "manas", "list").stdout
    assert "N2" in uniun(faces, "notes", "list", "--manas", "Water").stdout
    assert "N1" not in uniun(faces, "notes", "search", "sea", "--manas", "Water").stdout
    assert "whether to delete the Manas Water" in str(uniun(faces, "notes", "manas", "rm", "Water").exception)
    gone = uniun(faces, "notes", "manas", "rm", "Water", "--yes")
    assert gone.stdout == "Water is removed; its 1 note stays.\n"


def test_failures_and_the_graph(faces: MemoryFaces) -> None:
    assert "No note has failed" in uniun(faces, "notes", "failures").stdout
    assert "nothing is known yet" in uniun(faces, "notes", "graph").stderr
    uniun(faces, "notes", "add", "text", "--title", "T")
    uniun(faces, "notes", "add", "other", "--title", "U")
    note = faces.library.notes.notes["id0001"]
    asyncio.run(faces.library.knowledge.fail(note.id, note.content_hash, "No JSON.", give_up_after=1))
    assert uniun(faces, "notes", "failures").stdout == "id0001  T  (1 attempt): No JSON.\n"
    assert "1 note waits" in uniun(faces, "notes", "failures", "--retry").stdout
    assert uniun(faces, "notes", "status").stdout == "0 of 2 notes read into the graph, 2 wait.\n"
    asyncio.run(faces.library.read("id0002", "s", ("Sun", "warms", "Earth")))
    assert uniun(faces, "notes", "status").stdout == "1 of 2 notes read into the graph, 1 waits.\n"
    assert uniun(faces, "notes", "graph").stdout == "Sun warms Earth  (id0002)\n"
    unknown = uniun(faces, "notes", "graph", "Moon")
    assert isinstance(unknown.exception, InvalidRequest)
    assert "Nothing is known of Moon." in str(unknown.exception)


def test_groups_alone_show_help(faces: MemoryFaces) -> None:
    assert "import" in uniun(faces, "notes").stdout
    assert "create" in uniun(faces, "notes", "manas").stdout


def test_export_and_backup(faces: MemoryFaces, tmp_path: Path) -> None:
    uniun(faces, "notes", "add", "text", "--title", "T")
    exported = uniun(faces, "export", str(tmp_path / "out"))
    assert "1 note, 0 conversations, 0 cards, 0 Ganas." in exported.stdout
    assert (tmp_path / "out" / "notes" / "T.md").exists()
    again = uniun(faces, "export", str(tmp_path / "out"))
    assert isinstance(again.exception, InvalidRequest)
    forced = uniun(faces, "export", str(tmp_path / "out"), "--force")
    assert forced.exit_code == 0
    assert "earlier" not in forced.stdout
    (tmp_path / "out" / "notes" / "gone.md").write_text("of an earlier export")
    (tmp_path / "out" / "conversations").mkdir(exist_ok=True)
    (tmp_path / "out" / "conversations" / "Talk.md").write_text("of an earlier export")
    told = uniun(faces, "export", str(tmp_path / "out"), "--force").stdout
    assert "2 Markdown files there are of an earlier export" in " ".join(told.split())
    assert isinstance(uniun(faces, "backup", str(tmp_path / "copy")).exception, InvalidRequest)
