"""Brings notes up to date with a folder of Markdown files."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from data.importing.reading import ImportMark, ReadFile, Unreadable, hash_file, read_file
from data.importing.walk import FoundFile, Walk, walk
from data.models.threads import in_thread
from data.rest import Rest
from domain.entities.note import (
    ImportCopy,
    ImportedOrigin,
    ImportProblem,
    ImportProgress,
    ImportReport,
    Note,
    hash_content,
    hash_text,
)
from domain.errors import InvalidRequest
from domain.repositories.identity import Identities
from domain.repositories.note_changes import NoteChanges
from domain.repositories.note_parser import NoteParser
from domain.repositories.notes import NoteRepository

BATCH_FILES = 100
BATCH_BYTES = 4_000_000
"""A batch is one transaction; large files make it short in files."""
_CONFLICT = (
    "The file and its note have both been changed; the note is kept as it is. To take the file, delete the note "
    "and import again: a file that has changed is taken."
)

T = TypeVar("T")
Hashes = dict[str, tuple[int, int, str]]
"""What a watch knows of files: size, time of change, hash. A run of its own trusts nothing and begins empty."""


class FolderImporter:
    """Implements `Importer`. One transaction per batch, so that a kill loses nothing and the next run goes on."""

    def __init__(
        self,
        notes: NoteRepository,
        parser: NoteParser,
        identities: Identities,
        changes: NoteChanges,
        rest: Rest | None = None,
    ) -> None:
        """`rest` says when an answer goes before the next batch; none means never."""
        self._notes = notes
        self._parser = parser
        self._identities = identities
        self._changes = changes
        self._rest = rest

    async def run(
        self, folder: Path, progress: Callable[[ImportProgress], None], *, deleted_too: bool = False
    ) -> ImportReport:
        return await self._run(_checked(folder), progress, {}, deleted_too=deleted_too)

    async def watch(self, folder: Path) -> AsyncGenerator[ImportReport, None]:
        from data.importing.watch import bursts  # what watches is a library of its own

        root = _checked(folder)
        hashes: Hashes = {}
        async for changed in bursts(root):
            for path in changed:
                hashes.pop(path, None)
            yield await self._run(root, lambda step: None, hashes)

    async def _run(
        self,
        root: Path,
        progress: Callable[[ImportProgress], None],
        hashes: Hashes,
        *,
        deleted_too: bool = False,
    ) -> ImportReport:
        found = await in_thread(lambda step: walk(root, step), _ignore)
        problems = list(found.problems)
        inside = _inside(root)
        origins = await self._notes.imported_origins()
        known = {origin: entry for origin, entry in origins.items() if origin.startswith(inside)}
        current = await in_thread(lambda step: _hash_all(found.files, hashes, problems, step), _ignore)
        left_out = set() if deleted_too else _left_out(await self._notes.deleted_origins(), known, current)
        current = {origin: file_hash for origin, file_hash in current.items() if origin not in left_out}
        missing = _missing(known, found)
        moved = _moved(known, missing, current)
        work = [file for file in found.files if file.origin in current and _is_news(file, known, current)]
        done, total = len(found.files) - len(work), len(found.files)
        counts = Counter(unchanged=len(current) - len(work))
        same = _Known(origins, await self._written_here(work, known))
        added: dict[str, str] = {}
        copies: list[ImportCopy] = []
        attachments: set[str] = set()
        for batch in _batches(work):
            taken = counts["created"] + counts["updated"]
            if self._rest is not None and self._rest.due():
                progress(ImportProgress(done=done, total=total, path="", taken=taken, rests=True))
                await self._rest.over()

            def report(
                at: int, batch: Sequence[FoundFile] = batch, before: int = done, taken: int = taken
            ) -> None:
                path = batch[at - 1].origin
                progress(ImportProgress(done=before + at, total=total, path=path, taken=taken))

            read = await in_thread(lambda step, files=batch: self._read(files, problems, step), report)  # type: ignore[misc]
            created, cancelled = await _to_its_end(self._save(read, moved, problems, counts, attachments))
            new = {note.id: note.content_hash for note in created}
            added.update(new)
            copies.extend(filter(None, map(same.copied, created)))
            done += len(batch)
            taken = counts["created"] + counts["updated"]
            progress(ImportProgress(done=done, total=total, path=batch[-1].origin, taken=taken, added=new))
            if cancelled is not None:
                raise cancelled
        gone = tuple(sorted(set(missing) - set(moved.values())))
        return ImportReport(
            created=counts["created"],
            updated=counts["updated"],
            unchanged=counts["unchanged"],
            gone=len(gone),
            gone_files=gone,
            deleted=len(left_out),
            problems=tuple(problems),
            copies=tuple(copies),
            attachments=len(attachments),
            added=added,
        )

    async def came_from(self, folder: Path) -> dict[str, str]:
        inside = _inside(_resolved(folder))
        return {
            entry.note_id: ImportMark.parse(entry.mark).content_hash
            for origin, entry in (await self._notes.imported_origins()).items()
            if origin.startswith(inside)
        }

    def _read(
        self, files: Sequence[FoundFile], problems: list[ImportProblem], step: Callable[[int], None]
    ) -> list[ReadFile]:
        read: list[ReadFile] = []
        for at, file in enumerate(files, start=1):
            try:
                read.append(read_file(file, self._parser))
            except Unreadable as error:
                problems.append(ImportProblem(path=file.origin, reason=str(error), imported=False))
            step(at)
        return read

    async def _save(
        self,
        files: Sequence[ReadFile],
        moved: Mapping[str, str],
        problems: list[ImportProblem],
        counts: Counter[str],
        attachments: set[str],
    ) -> list[Note]:
        """Counts what was `created`, `updated` and `unchanged`, collects files that they link to, and returns what was
        created."""
        earlier = await self._notes.by_origin(
            [moved.get(read.file.origin, read.file.origin) for read in files]
        )
        notes: list[Note] = []
        created: list[Note] = []
        unchanged = 0
        now = self._identities.now()
        for read in files:
            old = earlier.get(moved.get(read.file.origin, read.file.origin))
            note = self._note(read, old, now)
            if old is not None and _is_changed_here(old) and (note.text, note.tags) != (old.text, old.tags):
                mark = ImportMark.parse(old.origin_mark)
                if mark.file_hash != read.file_hash:
                    problems.append(ImportProblem(path=read.file.origin, reason=_CONFLICT, imported=False))
                    continue
                note = old.model_copy(update={"origin": read.file.origin})
            problems.extend(
                ImportProblem(path=read.file.origin, reason=flaw, imported=True)
                for flaw in (*read.flaws, *read.to_come(now))
            )
            if note == old:
                unchanged += 1
                continue
            if old is None:
                created.append(note)
            notes.append(note)
            # By their names: whoever links to one seldom says in full where it is.
            attachments.update(path.rpartition("/")[2].lower() for path in read.parsed.attachments)
        if notes:
            await self._notes.save(notes)
            self._changes.announce([note.id for note in notes])
        counts.update(created=len(created), updated=len(notes) - len(created), unchanged=unchanged)
        return created

    async def _written_here(
        self, work: Sequence[FoundFile], known: Mapping[str, ImportedOrigin]
    ) -> Mapping[str, tuple[str, str]]:
        """Only where a file is new: all texts are read for it."""
        return await self._notes.written_here() if any(file.origin not in known for file in work) else {}

    def _note(self, read: ReadFile, old: Note | None, now: datetime) -> Note:
        parsed = read.parsed
        content_hash = hash_content(read.title, parsed.text, parsed.tags)
        created, changed = read.times(old, content_hash, now)
        flawed = bool(read.flaws or read.to_come(now))
        return Note(
            id=old.id if old is not None else self._identities.new_id(),
            title=read.title,
            text=parsed.text,
            tags=parsed.tags,
            aliases=read.aliases,
            links=parsed.links,
            source="imported",
            origin=read.file.origin,
            origin_mark=str(ImportMark(read.file_hash, content_hash, flawed=flawed)),
            created_at=created,
            changed_at=changed,
            content_hash=content_hash,
        )


class _Known:
    """What notes said before an import."""

    def __init__(
        self, imported: Mapping[str, ImportedOrigin], written: Mapping[str, tuple[str, str]]
    ) -> None:
        self._imported = {entry.content_hash: entry.note_id for entry in imported.values()}
        self._written = written

    def copied(self, note: Note) -> ImportCopy | None:
        """Of imported notes all must be equal, for a vault may have many files of one template. What was written here has
        a title of its own making."""
        if (note_id := self._imported.get(note.content_hash)) is not None:
            title = note.title
        elif (written := self._written.get(hash_text(note.text))) is not None:
            note_id, title = written
        else:
            return None
        return ImportCopy(path=note.origin or "", note_id=note_id, title=title)


def _checked(folder: Path) -> Path:
    root = _resolved(folder)
    try:
        if not root.is_dir():
            what = "is a file" if root.exists() else "does not exist"
            raise InvalidRequest(f"The folder {folder} {what}. Name a folder of Markdown files.")
        with os.scandir(root):
            return root
    except OSError as error:
        raise _unreadable(folder, error) from None


def _resolved(folder: Path) -> Path:
    """Whether it is there or not."""
    try:
        return Path(os.path.realpath(folder.expanduser()))
    except (OSError, RuntimeError, ValueError) as error:
        raise _unreadable(folder, error) from None


def _unreadable(folder: Path, error: Exception) -> InvalidRequest:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InvalidRequest(f"The folder {folder} cannot be read: {reason}.")


def _inside(root: Path) -> str:
    """How the paths of what lies below it begin."""
    return str(root).rstrip(os.sep) + os.sep


async def _to_its_end(work: Awaitable[T]) -> tuple[T, asyncio.CancelledError | None]:
    """A cancellation waits, so that what the database carries out all the same is known and told."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task), None
    except asyncio.CancelledError as cancelled:
        return await task, cancelled


def _hash_all(
    files: Sequence[FoundFile],
    hashes: Hashes,
    problems: list[ImportProblem],
    step: Callable[[int], None],
) -> dict[str, str]:
    """Origin to hash, of every file that can be read. Size and time alone would miss a change; reading is quick."""
    current: dict[str, str] = {}
    for at, file in enumerate(files, start=1):
        try:
            size, modified, known = hashes.get(file.path, (-1, -1, ""))
            if (size, modified) != (file.size, file.modified_ns):
                known = hash_file(file.path)
                hashes[file.path] = (file.size, file.modified_ns, known)
            current[file.origin] = known
        except Unreadable as error:
            problems.append(ImportProblem(path=file.origin, reason=str(error), imported=False))
        step(at)
    return current


def _is_news(file: FoundFile, known: Mapping[str, ImportedOrigin], current: Mapping[str, str]) -> bool:
    if file.origin not in known:
        return True
    mark = ImportMark.parse(known[file.origin].mark)
    return mark.flawed or mark.file_hash != current[file.origin]


def _left_out(
    deleted: Mapping[str, str], known: Mapping[str, ImportedOrigin], current: Mapping[str, str]
) -> set[str]:
    """Files whose notes were deleted here, and which have not changed since."""
    return {
        origin
        for origin, mark in deleted.items()
        if origin not in known and current.get(origin) == ImportMark.parse(mark).file_hash
    }


def _missing(known: Mapping[str, ImportedOrigin], found: Walk) -> list[str]:
    """Origins without a file. What lies in a folder that could not be read may still be there."""
    there = {file.origin for file in found.files}
    closed = tuple(folder + os.sep for folder in found.closed_folders)
    seen_broken = {problem.path for problem in found.problems}
    return [
        origin
        for origin in known
        if origin not in there and origin not in seen_broken and not origin.startswith(closed)
    ]


def _moved(
    known: Mapping[str, ImportedOrigin], missing: Sequence[str], current: Mapping[str, str]
) -> dict[str, str]:
    """New path to old path, where exactly one file went and exactly one came with the same content."""
    went: dict[str, list[str]] = {}
    came: dict[str, list[str]] = {}
    for origin in missing:
        went.setdefault(ImportMark.parse(known[origin].mark).file_hash, []).append(origin)
    for origin, file_hash in current.items():
        if origin not in known:
            came.setdefault(file_hash, []).append(origin)
    return {
        arrivals[0]: went[file_hash][0]
        for file_hash, arrivals in came.items()
        if len(arrivals) == 1 and len(went.get(file_hash, ())) == 1
    }


def _is_changed_here(note: Note) -> bool:
    """Since it was imported, by the user."""
    return ImportMark.parse(note.origin_mark).content_hash not in ("", note.content_hash)


def _batches(files: Sequence[FoundFile]) -> Iterator[list[FoundFile]]:
    batch: list[FoundFile] = []
    size = 0
    for file in files:
        if batch and (len(batch) >= BATCH_FILES or size + file.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def _ignore(done: int) -> None:
    pass
