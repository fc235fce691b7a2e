"""The knowledge graph: what notes assert about concepts and how they relate."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity

PendingState = Literal["waiting", "failed"]
NoteReadingState = Literal["read", "waiting", "reading", "failed"]


class ConceptClaim(Entity):
    """A concept as one note names it."""

    name: str = Field(min_length=1, max_length=200)
    type: str = Field(default="thing", max_length=60)


class RelationClaim(Entity):
    """`source verb target`, which reads as a sentence."""

    source: str = Field(min_length=1, max_length=200)
    verb: str = Field(min_length=1, max_length=100)
    target: str = Field(min_length=1, max_length=200)


class Extraction(Entity):
    """Everything that one note asserts."""

    concepts: tuple[ConceptClaim, ...] = Field(default=(), max_length=64)
    relations: tuple[RelationClaim, ...] = Field(default=(), max_length=64)
    summary: str = Field(default="", max_length=1000)


class Concept(Entity):
    """A concept of the graph, merged over all notes that name it."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    note_count: int = 0


class Relation(Entity):
    """One edge, asserted by at least one note."""

    source: Concept
    verb: str
    target: Concept
    note_ids: tuple[str, ...]


class Neighbourhood(Entity):
    """A part of the graph."""

    concepts: tuple[Concept, ...]
    relations: tuple[Relation, ...]


class PendingExtraction(Entity):
    """A note that is still to be read, or could not be."""

    note_id: str
    content_hash: str
    state: PendingState
    attempts: int
    error: str | None
    queued_at: datetime


class NoteReading(Entity):
    """How far the reading of a note into the graph is."""

    state: NoteReadingState
    error: str | None = None
    """Why the last attempt failed."""
    position: int | None = None
    """Its place in the scheduler's queue, from 1; none while it is not in there."""
    estimated_start_s: float | None = None
    tokens: int = 0
    """Written so far."""


class ReadingOverview(Entity):
    """How far the reading of all notes into the graph is."""

    notes: int
    waiting: int
    failed: int
    """Given up."""
    paused: bool
    hindrance: str | None = None
    """Why nothing is read at present, though it is not paused."""
    left_s: float | None = None
    """Estimated of the pace so far."""

    @property
    def read(self) -> int:
        return max(0, self.notes - self.waiting - self.failed)


class Passage(Entity):
    """A piece of a note that answers draw on."""

    number: int
    """How the text that it stands in names it."""
    note_id: str
    title: str
    text: str
    score: float
    written_by: str | None = None
    """The name of the Gana that wrote the note; empty for one that is gone, none for a note of the user's own."""


class RetrievedContext(Entity):
    """What is put before a question; `citations` best first."""

    text: str
    citations: tuple[Passage, ...]
    estimated_tokens: int
    hindrance: str | None = None
    """Why it was searched by words alone; none when the embedder did its part."""
