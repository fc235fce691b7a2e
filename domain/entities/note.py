"""Notes, and named sets of them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from domain.entities.entity import Entity

NoteSource = Literal["typed", "imported", "gana", "nataraj"]
Tag = Annotated[str, Field(min_length=1, max_length=100)]

MAX_NOTE_CHARACTERS = 10_000_000


class Note(Entity):
    """One note. Identity is `id`; `content_hash` changes with title, text or tags and with nothing else."""

    id: str
    title: str = Field(max_length=500)
    text: str = Field(max_length=MAX_NOTE_CHARACTERS)
    """Markdown, without front matter."""
    tags: tuple[Tag, ...] = ()
    """Sorted, without the leading #; a nested tag is written a/b."""
    aliases: tuple[str, ...] = ()
    source: NoteSource = "typed"
    origin: str | None = None
    """Where it came from: the path of an imported file, the id of a Gana or of a card."""
    created_at: datetime
    changed_at: datetime
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


class NoteLine(Entity):
    """A note in a list."""

    id: str
    title: str
    tags: tuple[str, ...]
    source: NoteSource
    changed_at: datetime
    characters: int


class SearchHit(Entity):
    """A note that a search found."""

    note_id: str
    title: str
    snippet: str
    """The words around the match, as plain text."""
    score: float
    """Larger is better; comparable within one search only."""


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


class ImportReport(Entity):
    """What an import did. Counts of files."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0
    """Files of earlier imports that are no longer there; their notes stay."""
    problems: tuple[ImportProblem, ...] = ()


class ImportProgress(Entity):
    """One step of an import."""

    done: int
    total: int
    path: str
