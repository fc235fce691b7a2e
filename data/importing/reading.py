"""One file of a vault to one note's worth of content."""

import errno
import hashlib
import os
import stat
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from data.importing.walk import FoundFile
from data.markdown.decoding import NotText, decode
from domain.entities.note import MAX_TITLE_CHARACTERS, Note, ParsedNote
from domain.repositories.note_parser import NoteParser

MAX_FILE_BYTES = 10_000_000
_A_DAY = timedelta(days=1)


class Unreadable(Exception):
    """The file cannot become a note; the message is a sentence."""


class ImportMark(NamedTuple):
    """What a note remembers of the file that it came from."""

    file_hash: str
    content_hash: str
    """Of the note as it was imported: another one now means that the user has changed it here."""
    flawed: bool
    """Such a file is read again at every run, to be reported again."""

    def __str__(self) -> str:
        return f"{self.file_hash} {self.content_hash} {'!' if self.flawed else '.'}"

    @classmethod
    def parse(cls, text: str | None) -> "ImportMark":
        parts = (text or "").split(" ")
        return cls(parts[0], parts[1], parts[2] == "!") if len(parts) == 3 else cls("", "", False)


@dataclass(frozen=True)
class ReadFile:
    """A file, understood."""

    file: FoundFile
    file_hash: str
    title: str
    parsed: ParsedNote
    aliases: tuple[str, ...]
    flaws: tuple[str, ...]

    def times(self, old: Note | None, content_hash: str, now: datetime) -> tuple[datetime, datetime]:
        """When the note was begun and last changed, neither in the future: as the file says in its front matter, else by
        its own time. What is known of the note already stays where the file says nothing new."""
        told = _past(self.parsed.created_at, now)
        written = _past(_written_at(self.file), now) or now
        same = old is not None and old.content_hash == content_hash
        changed = _past(self.parsed.updated_at, now) or (
            old.changed_at if old is not None and same else written
        )
        if told is not None:
            return told, max(told, changed)
        return min(written if old is None else old.created_at, changed), changed

    def to_come(self, now: datetime) -> list[str]:
        """What its front matter says of times that `times` cannot take; a day may be tomorrow elsewhere on Earth."""
        told = {"begun": self.parsed.created_at, "changed": self.parsed.updated_at}
        return [
            f"The front matter says that it was {what} on {time.date()}, which is still to come; that is not taken."
            for what, time in told.items()
            if time is not None and time > now + _A_DAY
        ]


def read_bytes(path: str) -> bytes:
    """Raises `Unreadable`. Never waits for a pipe, never reads more than the limit."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unreadable("It is no regular file.")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise Unreadable("It was there a moment ago and is gone.") from None
        raise Unreadable(f"It cannot be read: {error.strerror}.") from None
    if len(data) > MAX_FILE_BYTES:
        raise Unreadable(f"It has more than {MAX_FILE_BYTES // 1_000_000} MB.")
    return data


def hash_file(path: str) -> str:
    """SHA-256 of its bytes, in hex. Raises `Unreadable`."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def read_file(file: FoundFile, parser: NoteParser) -> ReadFile:
    """Raises `Unreadable`."""
    data = read_bytes(file.path)
    try:
        text, flaw = decode(data)
    except NotText as error:
        raise Unreadable(str(error)) from None
    try:
        parsed = parser.parse(text)
    except Exception as error:  # whatever one file does to the parser, the others are imported
        raise Unreadable(f"It cannot be understood: {type(error).__name__}: {error}.") from error
    stem = _stem(file.origin)
    title = parsed.title or stem
    # Wikilinks name files, whatever the title says.
    aliases = parsed.aliases if stem == title else tuple(dict.fromkeys((*parsed.aliases, stem)))
    return ReadFile(
        file=file,
        file_hash=hashlib.sha256(data).hexdigest(),
        title=title,
        parsed=parsed,
        aliases=aliases,
        flaws=(*((flaw,) if flaw else ()), *parsed.flaws),
    )


def _written_at(file: FoundFile) -> datetime | None:
    """None for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _past(time: datetime | None, now: datetime) -> datetime | None:
    return time if time is not None and time <= now else None


def _stem(origin: str) -> str:
    name = unicodedata.normalize("NFC", os.path.splitext(os.path.basename(origin))[0])
    return "".join(c if c.isprintable() else " " for c in name).strip()[:MAX_TITLE_CHARACTERS] or "untitled"
