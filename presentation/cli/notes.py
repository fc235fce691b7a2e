"""`uniun notes …`: writing, showing and finding."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from domain.entities.knowledge import PendingExtraction
from domain.entities.note import MAX_NOTE_CHARACTERS, Note, NoteDetails, SearchMode
from domain.errors import InvalidRequest, UniunError
from domain.reading_words import overview_words
from presentation.cli.openers import Library
from presentation.cli.run import run_async
from presentation.cli.terminal import make_sure, read_piped, say, write
from presentation.cli.wrap import write_beside
from presentation.counting import counted

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]
_ID_CHARACTERS = 12
_INPUT_BYTES = 4 * MAX_NOTE_CHARACTERS


def add(open_library: OpenLibrary, text: str | None, title: str, tags: Sequence[str]) -> None:
    """From the argument, stdin or an editor."""
    if text == "-" or (text is None and not sys.stdin.isatty()):
        text = read_piped(_INPUT_BYTES)
    if text is not None:
        note = run_async(_add(open_library, text, title, tags))
    else:
        note = _through_editor("", lambda written: run_async(_add(open_library, written, title, tags)))
    write(f"{_named(note)} is kept.\n")


def edit(open_library: OpenLibrary, reference: str) -> None:
    """The database is closed while the editor is open."""
    note_id, document, seen = run_async(_begin_edit(open_library, reference))
    note = _through_editor(
        document, lambda written: run_async(_finish_edit(open_library, note_id, written, seen))
    )
    write(f"{_named(note)} is saved.\n")


def remove(open_library: OpenLibrary, reference: str, *, sure: bool) -> None:
    """Asks on a terminal, and wants to be told elsewhere."""
    if not sure:
        make_sure(f"delete {_named(run_async(_show(open_library, reference)).note)}", sure=False)
    note = run_async(_delete(open_library, reference))
    write(f"{_named(note)} is deleted.\n")
    if note.source == "imported":
        say(
            f"its file {note.origin} stays. An import takes it again if it has changed since it was last imported, or with: "
            "uniun notes import FOLDER --deleted"
        )


async def tag(open_library: OpenLibrary, reference: str, add: Sequence[str], gone: Sequence[str]) -> None:
    """Prints the tags afterwards."""
    if not add and not gone:
        raise InvalidRequest("Say which tags to add, or with --remove which to remove.")
    async with open_library() as library:
        note = await library.notes.tag(reference, add, gone)
    write(f"{_named(note)} has {_tags(note.tags) or 'no tags'}.\n")


async def show(open_library: OpenLibrary, reference: str, *, raw: bool) -> None:
    """What is known about it, an empty line, its text; or the text alone."""
    details = await _show(open_library, reference)
    note = details.note
    if not raw:
        write("".join(f"{line}\n" for line in _about(details)) + "\n")
    write(note.text if note.text.endswith("\n") else f"{note.text}\n")


async def list_notes(open_library: OpenLibrary, tag: str | None, manas: str | None, limit: int) -> None:
    """One a line: id, day, title, tags."""
    async with open_library() as library:
        await _check_tag(library, tag)
        lines = await library.notes.list(tag=tag, manas=manas, limit=limit)
        count = await library.notes.count(tag=tag, manas=manas)
    for line in lines:
        day = line.changed_at.astimezone().date().isoformat()
        write(
            f"{line.id[:_ID_CHARACTERS]}  {day}  {_one_line(line.title)}  {_tags(line.tags)}".rstrip() + "\n"
        )
    narrowed = tag is not None or manas is not None
    if not count:
        say("no note fits." if narrowed else "there are no notes yet. Import some: uniun notes import FOLDER")
    elif len(lines) < count:
        these = "of these notes" if narrowed else "notes in all"
        say(f"the newest {len(lines):,}; there are {count:,} {these}. --limit shows more.")


async def search(
    open_library: OpenLibrary, query: str, mode: SearchMode, tag: str | None, manas: str | None, limit: int
) -> None:
    """Two lines a hit: id and title, the words around the match."""
    async with open_library() as library:
        await _check_tag(library, tag)
        result = await library.notes.search(query, mode=mode, tag=tag, manas=manas, limit=limit)
        worded = result
        if result.hits and mode == "both":
            worded = await library.notes.search(query, mode="words", tag=tag, manas=manas, limit=1)
    if result.without_meaning is not None:
        say(f"only words were compared. {result.without_meaning}")
    if result.waiting:
        say(f"{counted(result.waiting, 'note')} cannot be found by meaning yet. See: uniun notes embed")
    if result.hits and not worded.hits:
        say("no note has these words; what follows is close in meaning.")
    for hit in result.hits:
        write_beside(f"{hit.note_id[:_ID_CHARACTERS]}  ", _one_line(hit.title))
        write_beside(f"{' ' * _ID_CHARACTERS}  ", _one_line(hit.snippet))
    if not result.hits:
        say("nothing was found.")


async def list_tags(open_library: OpenLibrary) -> None:
    """Most used first."""
    async with open_library() as library:
        tags = await library.notes.tags()
    for name, count in tags.items():
        write(f"{count:6}  #{name}\n")


async def embed(open_library: OpenLibrary) -> None:
    """With a bar on a terminal."""
    from presentation.cli.importing import counting_bar  # no list of notes has one

    async with open_library() as library:
        with counting_bar("embedding") as step:
            count = await library.notes.embed(lambda done, total: step(done, total, ""))
    write(f"{counted(count, 'note')} embedded.\n" if count else "Every note is embedded.\n")


async def show_status(open_library: OpenLibrary) -> None:
    """One sentence."""
    async with open_library() as library:
        write(f"{overview_words(await library.knowledge().overview())}.\n")


async def show_failures(open_library: OpenLibrary, *, retry: bool) -> None:
    """One a line: id, attempts, title, reason."""
    async with open_library() as library:
        failures = await library.knowledge().failures()
        waiting = await library.knowledge().retry() if retry else 0
    for failure in failures:
        name = f"{failure.note_id[:_ID_CHARACTERS]}  {_one_line(failure.title)}"
        write(f"{name}  ({counted(failure.attempts, 'attempt')}): {_one_line(failure.error)}\n")
    if retry:
        write(f"{counted(waiting, 'note waits', 'notes wait')} to be read again.\n")
    elif not failures:
        write("No note has failed.\n")


async def show_graph(open_library: OpenLibrary, concept: str | None, limit: int) -> None:
    """One sentence a line, with the notes that say it; then concepts that no sentence has."""
    async with open_library() as library:
        knowledge = library.knowledge()
        graph = await knowledge.graph(concept, limit=limit)
        if concept is not None and not graph.concepts and (await knowledge.graph(limit=1)).concepts:
            raise InvalidRequest(
                f"Nothing is known of {_one_line(concept)}. What is known: uniun notes graph"
            )
    for relation in graph.relations:
        notes = ", ".join(note_id[:_ID_CHARACTERS] for note_id in relation.note_ids)
        write(_one_line(f"{relation.source.name} {relation.verb} {relation.target.name}") + f"  ({notes})\n")
    related = {each.id for relation in graph.relations for each in (relation.source, relation.target)}
    for alone in graph.concepts:
        if alone.id not in related:
            write(f"{_one_line(alone.name)}\n")
    if not graph.concepts:
        say("nothing is known yet. Notes are read while the chat is open, and by: uniun notes read")


async def _check_tag(library: Library, tag: str | None) -> None:
    if tag is not None and not await library.notes.count(tag=tag):
        raise InvalidRequest(f"No note has the tag {_one_line(tag)}. List the tags with: uniun notes tags")


async def _add(open_library: OpenLibrary, text: str, title: str, tags: Sequence[str]) -> Note:
    async with open_library() as library:
        return await library.notes.add(text, title=title, tags=tags)


async def _begin_edit(open_library: OpenLibrary, reference: str) -> tuple[str, str, str]:
    async with open_library() as library:
        return await library.notes.begin_edit(reference)


async def _finish_edit(open_library: OpenLibrary, note_id: str, document: str, seen: str) -> Note:
    async with open_library() as library:
        return await library.notes.finish_edit(note_id, document, seen)


async def _show(open_library: OpenLibrary, reference: str) -> NoteDetails:
    async with open_library() as library:
        return await library.notes.show(reference)


async def _delete(open_library: OpenLibrary, reference: str) -> Note:
    async with open_library() as library:
        return await library.notes.delete(reference)


def _through_editor(text: str, take: Callable[[str], Note]) -> Note:
    """What the user wrote is only thrown away once it has been taken."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    handle, name = tempfile.mkstemp(prefix="uniun-", suffix=".md")
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    try:
        ended = subprocess.run([*command, name], check=False).returncode
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InvalidRequest(
            f"The editor {command[0]} cannot be started: {error.strerror}. Set EDITOR to one that can."
        ) from None
    try:
        if ended:
            raise UniunError(f"The editor {command[0]} ended with status {ended}.")
        note = take(path.read_text(encoding="utf-8", errors="replace"))
    except BaseException:
        say(f"what you wrote is in {name}.")
        raise
    path.unlink(missing_ok=True)
    return note


def _about(details: NoteDetails) -> list[str]:
    note = details.note
    shown = {
        "title": note.title,
        "id": note.id,
        "tags": _tags(note.tags),
        "created": note.created_at.astimezone().isoformat(sep=" ", timespec="minutes"),
        "changed": note.changed_at.astimezone().isoformat(sep=" ", timespec="minutes"),
        "source": f"{note.source} from {note.origin}" if note.origin else note.source,
        "links": ", ".join(
            link.target if link.target_id else f"{link.target} (no such note)" for link in details.links
        ),
        "attachments": f"{', '.join(details.attachments)} (UNIUN takes no attachments yet)"
        if details.attachments
        else "",
        "linked from": ", ".join(line.title for line in details.backlinks),
        "concepts": ", ".join(concept.name for concept in details.concepts),
        "summary": details.summary or "",
        "reading": _reading(details.pending),
    }
    return [f"{key}: {_one_line(value)}" for key, value in shown.items() if value]


def _reading(pending: PendingExtraction | None) -> str:
    if pending is None:
        return "done"
    if pending.state == "failed":
        return f"failed after {counted(pending.attempts, 'attempt')}: {pending.error}"
    return "waits to be read"


def _named(note: Note) -> str:
    return f"{_one_line(note.title)} ({note.id[:_ID_CHARACTERS]})"


def _tags(tags: Sequence[str]) -> str:
    return " ".join(f"#{tag}" for tag in tags)


def _one_line(text: str) -> str:
    return " ".join(text.split())
