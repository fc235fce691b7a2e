"""Notes, their names and links, Manases, vectors, and the queue of notes that need a vector.

Texts come last in a row: SQLite reads a row from its beginning, and a list of notes must not read their texts.
The full-text index, `note_search`, differs between the databases and is made by the migration alone.
"""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary
from sqlmodel import Field

from data.database.columns import Row, SafeJson, SafeText, UtcDateTime


class NoteRow(Row, table=True):
    __tablename__ = "note"
    # A path may be longer than what a B-tree of PostgreSQL takes.
    __table_args__ = (Index("ix_note_origin", "origin", postgresql_using="hash"),)

    number: int | None = Field(default=None, primary_key=True)
    """The key of the full-text index, which takes numbers only; also the order of arrival."""
    id: str = Field(unique=True, sa_type=SafeText)
    source: str = Field(sa_type=SafeText)
    origin: str | None = Field(sa_type=SafeText)
    origin_mark: str | None = Field(sa_type=SafeText)
    created_at: datetime = Field(sa_type=UtcDateTime)
    changed_at: datetime = Field(sa_type=UtcDateTime, index=True)
    content_hash: str = Field(sa_type=SafeText)
    characters: int
    title: str = Field(sa_type=SafeText)
    tags: list[str] = Field(sa_type=SafeJson)
    aliases: list[str] = Field(sa_type=SafeJson)
    links: list[str] = Field(sa_type=SafeJson)
    text: str = Field(sa_type=SafeText)


class DeletedFileRow(Row, table=True):
    """A file whose note was deleted, and what the note remembered of it."""

    __tablename__ = "deleted_file"

    key: str = Field(sa_type=SafeText, primary_key=True)
    """A hash of the path, which may be longer than what a B-tree of PostgreSQL takes."""
    origin: str = Field(sa_type=SafeText)
    mark: str = Field(sa_type=SafeText)


class NoteTagRow(Row, table=True):
    __tablename__ = "note_tag"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    tag: str = Field(sa_type=SafeText, primary_key=True, index=True)


class NoteArrivalRow(Row, table=True):
    """When a note first got a tag, or came into a Manas; it stays when the note loses the one or leaves the other."""

    __tablename__ = "note_arrival"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    place: str = Field(sa_type=SafeText, primary_key=True)
    """As `tag_place` and `manas_place` of the repositories write it."""
    number: int = Field(sa_type=BigInteger, index=True)
    """Of the counter `arrivals`."""


class NoteNameRow(Row, table=True):
    """What links may call a note: its title and aliases, folded."""

    __tablename__ = "note_name"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    key: str = Field(sa_type=SafeText, primary_key=True, index=True)


class NoteLinkRow(Row, table=True):
    """A link as it is written; which note it means is found when it is asked for."""

    __tablename__ = "note_link"

    source_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    position: int = Field(primary_key=True)
    target: str = Field(sa_type=SafeText)
    key: str = Field(sa_type=SafeText, index=True)
    """The target, folded."""
    last_key: str = Field(sa_type=SafeText, index=True)
    """Its last path component, folded."""


class ManasRow(Row, table=True):
    __tablename__ = "manas"

    id: str = Field(sa_type=SafeText, primary_key=True)
    name: str = Field(sa_type=SafeText)
    key: str = Field(sa_type=SafeText, unique=True)
    """The name, folded: two that differ by case only would be taken for one another."""


class ManasNoteRow(Row, table=True):
    __tablename__ = "manas_note"

    manas_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("manas.id", ondelete="CASCADE")], primary_key=True
    )
    note_id: str = Field(
        sa_type=SafeText,
        sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")],
        primary_key=True,
        index=True,
    )


class VectorRow(Row, table=True):
    """The vector of a note, float32. Without a vector it tells that the note is gone, to indexes held in memory."""

    __tablename__ = "note_vector"

    note_id: str = Field(sa_type=SafeText, primary_key=True)
    version: int = Field(sa_type=BigInteger, index=True)
    content_hash: str | None = Field(sa_type=SafeText)
    vector: bytes | None = Field(sa_type=LargeBinary)


class PendingVectorRow(Row, table=True):
    __tablename__ = "pending_vector"

    note_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("note.id", ondelete="CASCADE")], primary_key=True
    )
    queued_at: datetime = Field(sa_type=UtcDateTime, index=True)


class CounterRow(Row, table=True):
    """Numbers that only grow. The row lock makes them grow in the order of the commits, which a sequence does not."""

    __tablename__ = "counter"

    name: str = Field(sa_type=SafeText, primary_key=True)
    value: int = Field(sa_type=BigInteger)
