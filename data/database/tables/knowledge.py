"""The knowledge graph. What a note asserts is kept per note; concepts are what the assertions have in common."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlmodel import Field

from data.database.columns import Row, SafeText, UtcDateTime


class ConceptRow(Row, table=True):
    """Name, type and count follow from the mentions and are kept up to date with them."""

    __tablename__ = "concept"

    id: str = Field(sa_type=SafeText, primary_key=True)
    name: str = Field(sa_type=SafeText)
    type: str = Field(sa_type=SafeText)
    note_count: int = Field(index=True)


class ConceptKeyRow(Row, table=True):
    """A folded name, and the concept that it means."""

    __tablename__ = "concept_key"

    key: str = Field(sa_type=SafeText, primary_key=True)
    concept_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("concept.id", ondelete="CASCADE")], index=True
    )


class MentionRow(Row, table=True):
    """A note names a concept, in these words."""

    __tablename__ = "mention"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    concept_id: str = Field(
        sa_type=SafeText,
        sa_column_args=[ForeignKey("concept.id", ondelete="CASCADE")],
        primary_key=True,
        index=True,
    )
    name: str = Field(sa_type=SafeText, primary_key=True)
    type: str = Field(sa_type=SafeText)
    key: str = Field(sa_type=SafeText, index=True)
    """The name as `NoteNameRow` has it."""


class AssertionRow(Row, table=True):
    """A note says that one concept stands in a relation to another, in these words.

    The ids are those of the concepts that the names mean at the time. Both may be the same; readers leave that out, and
    it is seen again when the concept becomes two.
    """

    __tablename__ = "assertion"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    source_name: str = Field(sa_type=SafeText, primary_key=True)
    verb: str = Field(sa_type=SafeText, primary_key=True)
    target_name: str = Field(sa_type=SafeText, primary_key=True)
    source_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("concept.id", ondelete="CASCADE")], index=True
    )
    target_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("concept.id", ondelete="CASCADE")], index=True
    )


class SummaryRow(Row, table=True):
    __tablename__ = "note_summary"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    summary: str = Field(sa_type=SafeText)


class PendingExtractionRow(Row, table=True):
    __tablename__ = "pending_extraction"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    content_hash: str = Field(sa_type=SafeText)
    state: str = Field(sa_type=SafeText)
    attempts: int
    error: str | None = Field(sa_type=SafeText)
    queued_at: datetime = Field(sa_type=UtcDateTime, index=True)
