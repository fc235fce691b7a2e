"""Ganas, their claims and their run log."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint
from sqlmodel import Field

from data.database.columns import Row, SafeJson, SafeText, UtcDateTime


class GanaRow(Row, table=True):
    __tablename__ = "gana"

    id: str = Field(sa_type=SafeText, primary_key=True)
    name: str = Field(sa_type=SafeText, index=True)
    draft: dict[str, Any] = Field(sa_type=SafeJson)
    enabled: bool
    cursor: int | None = Field(sa_type=BigInteger)
    due_at: datetime | None = Field(sa_type=UtcDateTime, index=True)
    created_at: datetime = Field(sa_type=UtcDateTime)
    claim: str | None = Field(default=None, sa_type=SafeText)
    """None while nobody runs it."""
    claim_due_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """The tick that is claimed; none for a run outside the calendar."""
    claim_until: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
    """Past this the claimer is taken for dead."""


class GanaRunRow(Row, table=True):
    """`completed_due_at` is set by the completion of a tick alone, so that a tick is completed, and published, once."""

    __tablename__ = "gana_run"
    __table_args__ = (UniqueConstraint("gana_id", "completed_due_at"),)

    number: int | None = Field(default=None, primary_key=True)
    """The order of arrival, for runs of one moment."""
    id: str = Field(sa_type=SafeText, unique=True)
    gana_id: str = Field(sa_type=SafeText, sa_column_args=[ForeignKey("gana.id", ondelete="CASCADE")])
    due_at: datetime | None = Field(sa_type=UtcDateTime)
    completed_due_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    status: str = Field(sa_type=SafeText, index=True)
    reason: str | None = Field(sa_type=SafeText)
    detail: str = Field(sa_type=SafeText)
    input_note_ids: list[str] = Field(sa_type=SafeJson)
    output_note_id: str | None = Field(sa_type=SafeText)
    output: str = Field(sa_type=SafeText)
    started_at: datetime = Field(sa_type=UtcDateTime, index=True)
    seconds: float
    tokens: int
    preemptions: int
    by: str = Field(sa_type=SafeText)
