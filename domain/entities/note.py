"""Notes, and named sets of them."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.knowledge import Concept, PendingExtraction

SearchMode = Literal["words", "meaning", "both"]
NoteSource = Literal["typed", "imported", "gana", "nataraj"]
Tag = Annotated[str, Field(min_length=1, max_length=100)]

MAX_NOTE_CHARACTERS = 10_000_000
MAX_TITLE_CHARACTERS = 500
MAX_TAG_CHARACTERS = 100
_FILE = re.compile(
    r"\.(avif|bmp|gif|heic|ico|jpe?g|png|svg|tiff?|webp"
    r"|3gp|aac|aiff?|flac|m4a|mp3|og[agv]|opus|wav|avi|m4v|mkv|mov|mp4|mpe?g|webm"
    r"|base|bib|canvas|csv|docx?|epub|html?|json|od[st]|pdf|pptx?|rtf|tex|tsv|txt|xlsx?|xml|ya?ml|zip)",
    re.IGNORECASE,
)
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
"""Control characters that are no spaces, and halves of characters."""


def names_file(target: str) -> bool:
    """Whether a link means a picture, a recording or another file beside the notes, as `![[map.png]]`."""
    return _FILE.fullmatch(target[target.rfind(".") :]) is not None


def normal_tag(text: str) -> str:
    """How a tag is kept and looked for: lower case, composed, no # before it, no spaces; empty if nothing is left."""
    words = _UNSEEN.sub("", unicodedata.normalize("NFC", text)).lower().split()
    return "/".join(part for part in "-".join(words).lstrip("#").split("/") if part)


def clean_title(text: str) -> str:
    """One line without control characters, short enough to be a title; empty if nothing is left."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(shown.split())[:MAX_TITLE_CHARACTERS].rstrip()


def hash_content(title: str, text: str, tags: Iterable[str]) -> str:
    """A note's `content_hash`: SHA-256, in hex, over title, text and tags."""
    return hashlib.sha256(json.dumps([title, text, sorted(tags)]).encode()).hexdigest()


def hash_text(text: str) -> str:
    """Equal for texts that differ in nothing but space around them: a file ends in a line break, what is typed does not."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()


class Note(Entity):
    """One note. Identity is `id`; `content_hash` changes with title, text or tags and with nothing else."""

    id: str
    title: str = Field(max_length=500)
    text: str = Field(max_length=MAX_NOTE_CHARACTERS)
    """Markdown, without front matter."""
    tags: tuple[Tag, ...] = ()
    """Sorted, without the leading #; a nested tag is written a/b."""
    aliases: tuple[str, ...] = ()
    """Other names that links may use; among them the name of the file that it came from."""
    links: tuple[str, ...] = ()
    """Names or paths of the notes that it links to, in the order of the text, each once; without .md, # and |."""
    source: NoteSource = "typed"
    origin: str | None = None
    """Where it came from: the path of an imported file, the id of a Gana or of a card."""
    origin_mark: str | None = None
    """What the importer wants to know at its next run; means nothing to others."""
    created_at: datetime
    changed_at: datetime
    """When its present content was written; of an imported note as its file says."""
    content_hash: str


class NoteDraft(Entity):
    """What a caller says of a note; the rest is derived."""

    title: str = Field(default="", max_length=500)
    """Derived from the first heading or line when empty."""
    text: str = Field(max_length=MAX_NOTE_CHARACTERS)
    tags: tuple[Tag, ...] = Field(default=(), max_length=200)
    aliases: tuple[str, ...] = Field(default=(), max_length=200)
    source: NoteSource = "typed"
    origin: str | None = None
    created_at: datetime | None = None


class Link(Entity):
    """A link from one note to another, by title or path; `target_id` is none while no such note exists."""

    source_id: str
    target: str
    target_id: str | None

    @property
    def to_file(self) -> bool:
        """To a file: no note is missing there."""
        return self.target_id is None and names_file(self.target)


class ParsedNote(Entity):
    """What a Markdown text says of itself."""

    title: str | None
    """From the front matter, else the first heading of the first level; none if it has neither."""
    text: str
    """Without its front matter; lines end with \\n."""
    tags: tuple[str, ...] = ()
    """Of the front matter and of the text, sorted."""
    text_tags: tuple[str, ...] = ()
    """Those that are written in the text."""
    aliases: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    """Files beside the notes, such as pictures, that it links to or shows; those of wikilinks are links too."""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    flaws: tuple[str, ...] = ()
    """What could not be understood, one sentence each."""


class NoteArrival(Entity):
    """A note as it is now, and when it first got the tag, or first came into the Manas, that was asked for."""

    number: int
    """Whoever has seen an arrival has seen, or could have, every one with a smaller number. A time cannot promise that:
    a large import begins before a small note is saved, and ends after it."""
    note: Note


class ImportedOrigin(Entity):
    """What is known of a file that was imported."""

    note_id: str
    content_hash: str
    mark: str | None


class NoteLine(Entity):
    """A note in a list."""

    id: str
    title: str
    tags: tuple[str, ...]
    source: NoteSource
    changed_at: datetime
    characters: int


class NoteDetails(Entity):
    """A note and what is known about it."""

    note: Note
    links: tuple[Link, ...]
    """To notes, also such as do not exist yet; not to files."""
    attachments: tuple[str, ...] = ()
    """Files that it links to or shows; none of them is kept."""
    backlinks: tuple[NoteLine, ...]
    """Notes that link to it."""
    concepts: tuple[Concept, ...]
    summary: str | None
    pending: PendingExtraction | None
    """What is still to be read of it; none when it has been read."""


class SearchHit(Entity):
    """A note that a search found."""

    note_id: str
    title: str
    snippet: str
    """The words around the match, as plain text."""
    score: float
    """Larger is better; comparable within one search only."""


class SearchResult(Entity):
    """Best first."""

    hits: tuple[SearchHit, ...]
    without_meaning: str | None = None
    """Why only words were compared although meaning was asked for too."""
    waiting: int = 0
    """Notes that a search by meaning cannot find yet."""


class Manas(Entity):
    """A named set of notes: a knowledge base for Ganas, a scope for the deck and the chat."""

    id: str
    name: str = Field(min_length=1, max_length=200)
    note_count: int = 0


class ImportProblem(Entity):
    """A file that could not be imported, or not wholly."""

    path: str
    reason: str
    imported: bool
    """Whether the rest of it was imported all the same."""


class ImportCopy(Entity):
    """A file that became a note, and the note that had said the same before."""

    path: str
    note_id: str
    title: str


class ImportReport(Entity):
    """What an import did. Counts of files."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0
    """Files of earlier imports that are no longer there; their notes stay."""
    gone_files: tuple[str, ...] = ()
    """Their paths."""
    deleted: int = 0
    """Files that were left out because their notes were deleted; they come back when they change."""
    problems: tuple[ImportProblem, ...] = ()
    copies: tuple[ImportCopy, ...] = ()
    """Of those created: title, text and tags of an imported note, or the text of one that was written here."""
    attachments: int = 0
    """Files, such as pictures, that new and changed notes link to; they are not taken."""
    added: dict[str, str] = Field(default_factory=dict)
    """Id to content hash of the notes that were created."""


class ImportProgress(Entity):
    """One step of an import."""

    done: int
    total: int
    path: str
    taken: int = 0
    """Notes that were created or updated so far."""
    added: dict[str, str] = Field(default_factory=dict)
    """Id to content hash of those that were created since the step before."""
    rests: bool = False
    """Nothing is imported just now, because somebody waits for an answer on the same cores."""


class UndoneImport(Entity):
    """What became of the notes that an import had added."""

    deleted: int
    kept: int
    """They were changed since."""
