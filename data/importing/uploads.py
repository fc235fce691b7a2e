"""Uploaded files and archives, unpacked within limits."""

import asyncio
import errno
import hashlib
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath

from data.importing.reading import MAX_FILE_BYTES
from data.importing.walk import MAX_DEPTH, SUFFIXES, is_hidden
from data.models.threads import in_thread
from domain.entities.note import ImportProblem
from domain.errors import InvalidRequest
from domain.repositories.uploads import UnpackedFiles, UploadedFile

MAX_UPLOAD_BYTES = 100_000_000
MAX_UPLOADED_FILES = 1_000
MAX_UNPACKED_FILES = 20_000
MAX_UNPACKED_BYTES = 500_000_000
_MAX_DIRECTORY_BYTES = 8_000_000
"""Of an archive: its table of contents is read as a whole."""
_PIECE_BYTES = 1 << 16
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x07"
_NAME_BYTES = 200
_OUR_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""Not the archive's fault."""
_LOOSE = ".files"
"""No archive is called so."""


class UploadFolder:
    """Implements `Uploads` below the data folder. One upload at a time, for two would share the folder."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / "uploads"
        self._one = asyncio.Lock()

    @asynccontextmanager
    async def unpacked(self, files: Sequence[UploadedFile]) -> AsyncGenerator[UnpackedFiles, None]:
        _check(files)
        archives = [file for file in files if file.name.lower().endswith(".zip")]
        whole = len(files) == 1 and len(archives) == 1
        async with self._one:
            incoming = self._root / ".incoming"
            folder = self._root / (_safe_name(archives[0].name[:-4]) if whole else _LOOSE)
            names: dict[str, str] = {}
            try:
                try:
                    problems = await _unpack(files, archives, incoming, folder, names, whole=whole)
                except OSError as error:
                    raise InvalidRequest(
                        f"The files could not be put into {self._root} for the import: {error.strerror or error}. Free some "
                        "space or check that folder, and try again; nothing was imported."
                    ) from error
                # As the importer sees it: a data folder may be reached through a link.
                yield UnpackedFiles(await asyncio.to_thread(folder.resolve), tuple(problems), whole, names)
            finally:
                await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)


async def _unpack(
    files: Sequence[UploadedFile],
    archives: Sequence[UploadedFile],
    incoming: Path,
    folder: Path,
    names: dict[str, str],
    *,
    whole: bool,
) -> list[ImportProblem]:
    """Into the folder; `names` gets those of single files. Returns what is left out; raises `InvalidRequest`, and `OSError` as of a full disk."""
    await asyncio.to_thread(_begin, incoming, folder)
    problems: list[ImportProblem] = []
    unpacking = _Unpacking(problems)
    for number, file in enumerate(files):
        if file in archives:
            await file.save(incoming / f"{number}.zip")
            below = folder if whole else folder / _safe_name(file.name[:-4])
            await in_thread(
                lambda step, source=incoming / f"{number}.zip", name=file.name, into=below: (  # type: ignore[misc]
                    unpacking.unpack(source, name, into, step)
                ),
                lambda done: None,
            )
        elif (reason := _hindrance(file)) is not None:
            problems.append(ImportProblem(path=file.name, reason=reason, imported=False))
        else:
            sent = incoming / f"{number}.md"
            await file.save(sent)
            path = await asyncio.to_thread(_put, sent, folder, _safe_name(file.name))
            if path is None:
                reason = "Another of the files has the same name and the same text."
                problems.append(ImportProblem(path=file.name, reason=reason, imported=False))
            else:
                names[path] = file.name
    return problems


def _put(sent: Path, folder: Path, name: str) -> str | None:
    """The path of the file below the folder; none if it is there already. A name alone would make one note of two files."""
    digest = hashlib.sha256(sent.read_bytes()).hexdigest()[:16]
    target = folder / digest / name
    if target.exists():
        return None
    target.parent.mkdir(exist_ok=True)
    sent.rename(target)
    return f"{digest}/{name}"


class _Unpacking:
    """One limit for all archives of an upload."""

    def __init__(self, problems: list[ImportProblem]) -> None:
        self._problems = problems
        self._files = 0
        self._bytes = 0

    def unpack(self, source: Path, name: str, folder: Path, step: Callable[[int], None]) -> None:
        """Only its Markdown files; a member's sizes are what is read of it, whatever it says of itself."""
        _check_directory(source, name)
        try:
            with zipfile.ZipFile(source) as archive:
                for number, member in enumerate(archive.infolist()):
                    step(number)
                    if not member.is_dir() and member.filename.lower().endswith(SUFFIXES):
                        self._take(archive, member, folder)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno in _OUR_DISK:
                raise
            raise InvalidRequest(
                f"The archive {name} cannot be read: {error}. Make it again; nothing of it was imported."
            ) from error

    def _take(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> None:
        parts = PurePosixPath(member.filename.replace("\\", "/")).parts
        if any(is_hidden(part) and part != ".." for part in parts) or "__MACOSX" in parts:
            return
        target = folder.joinpath(*parts)
        reason = self._refusal(member, parts) or _no_room(target)
        if reason is not None:
            self._problems.append(ImportProblem(path=member.filename[:500], reason=reason, imported=False))
            return
        self._files += 1
        if self._files > MAX_UNPACKED_FILES:
            raise InvalidRequest(
                f"The archive holds more than {MAX_UNPACKED_FILES} notes; nothing of it was imported. Unpack it, and "
                "import the folder instead."
            )
        try:
            self._write(archive, member, target)
            _date(target, member)
        except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error) as error:
            target.unlink(missing_ok=True)
            problem = f"It cannot be unpacked: {error}."
            self._problems.append(ImportProblem(path=member.filename[:500], reason=problem, imported=False))

    def _refusal(self, member: zipfile.ZipInfo, parts: tuple[str, ...]) -> str | None:
        if not parts or parts[0] == "/" or ".." in parts or ":" in parts[0] or "\0" in member.filename:
            return "Its path leads out of the archive."
        if (member.external_attr >> 16) & 0o170000 == 0o120000:
            return "It is a link, not a file."
        if member.flag_bits & 1:
            return "It is encrypted."
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return "It is packed in an unusual way."
        if len(parts) > MAX_DEPTH or any(len(part.encode(errors="replace")) > _NAME_BYTES for part in parts):
            return "Its path is too long."
        return None

    def _write(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
        size = 0
        with archive.open(member) as packed, target.open("xb") as file:
            # One byte past the limit: the importer says then that the file is too large.
            while size <= MAX_FILE_BYTES and (piece := packed.read(_PIECE_BYTES)):
                size += len(piece)
                self._bytes += len(piece)
                if self._bytes > MAX_UNPACKED_BYTES:
                    raise InvalidRequest(
                        f"Unpacked, the archive holds more than {MAX_UNPACKED_BYTES // 1_000_000} MB of notes; "
                        "nothing of it was imported. Unpack it, and import the folder instead."
                    )
                file.write(piece)


def _date(target: Path, member: zipfile.ZipInfo) -> None:
    """The file is as old as the archive says, in the zone of this machine; as new as it is if no calendar has that time."""
    try:
        written = datetime(*member.date_time).timestamp()  # noqa: DTZ001 - an archive knows no zone
        os.utime(target, (written, written))
    except (ValueError, OverflowError):
        return


def _no_room(target: Path) -> str | None:
    """Makes the folders above the file; why it cannot be there, none if it can. Raises `OSError` as of a full disk."""
    try:
        if target.exists():
            return "Another file of the archive has the same name."
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return "One of its folders has the name of another file of the archive."
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return "Its path is too long."
    return None


def _check(files: Sequence[UploadedFile]) -> None:
    if len(files) > MAX_UPLOADED_FILES:
        raise InvalidRequest(
            f"{len(files)} files are more than {MAX_UPLOADED_FILES}. Put them into one .zip, or import their folder."
        )
    if sum(file.size() for file in files) > MAX_UPLOAD_BYTES:
        raise InvalidRequest(
            f"These files have more than {MAX_UPLOAD_BYTES // 1_000_000} MB. Import the folder that they are in instead."
        )


def _hindrance(file: UploadedFile) -> str | None:
    if not file.name.lower().endswith(SUFFIXES):
        return "It is neither Markdown (.md) nor an archive (.zip)."
    if file.size() > MAX_FILE_BYTES:
        return f"It has more than {MAX_FILE_BYTES // 1_000_000} MB."
    return None


def _check_directory(source: Path, name: str) -> None:
    """Before the library reads it: an archive of 100 MB may list two million files."""
    with source.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - (1 << 16) - 100))
        tail = file.read()
    at = tail.rfind(_END)
    listed = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    if listed > _MAX_DIRECTORY_BYTES or _END_64 in tail[max(0, at - 20) : max(0, at)]:
        raise InvalidRequest(
            f"The archive {name} lists too many files; nothing of it was imported. Unpack it, and import the folder instead."
        )


def _begin(incoming: Path, folder: Path) -> None:
    shutil.rmtree(incoming.parent, ignore_errors=True)
    incoming.mkdir(parents=True)
    folder.mkdir(parents=True, exist_ok=True)


def _safe_name(name: str) -> str:
    """One path component, never a hidden one; letters of every script stay."""
    plain = re.sub(r"[^\w .()&+,'-]", "_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, dot, suffix = plain.rpartition(".")
    short = stem.encode()[:_NAME_BYTES].decode(errors="ignore") + dot + suffix[:20] if dot else plain
    return short.encode()[: _NAME_BYTES + 25].decode(errors="ignore") or "upload"
