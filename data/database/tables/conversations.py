"""Conversations and their messages."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlmodel import Field

from data.database.columns import Row, SafeJson, SafeText, UtcDateTime


class ConversationRow(Row, table=True):
    __tablename__ = "conversation"

    id: str = Field(sa_type=SafeText, primary_key=True)
    title: str = Field(sa_type=SafeText)
    title_folded: str = Field(sa_type=SafeText)
    manas_id: str | None = Field(sa_type=SafeText)
    model: str | None = Field(sa_type=SafeText)
    leaf_id: str | None = Field(sa_type=SafeText)
    created_at: datetime = Field(sa_type=UtcDateTime)
    changed_at: datetime = Field(sa_type=UtcDateTime, index=True)


class MessageRow(Row, table=True):
    __tablename__ = "message"

    number: int | None = Field(default=None, primary_key=True)
    """The order of arrival, for messages of one moment."""
    id: str = Field(sa_type=SafeText, unique=True)
    conversation_id: str = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("conversation.id", ondelete="CASCADE")], index=True
    )
    parent_id: str | None = Field(
        sa_type=SafeText, sa_column_args=[ForeignKey("message.id", ondelete="CASCADE")], index=True
    )
    role: str = Field(sa_type=SafeText)
    state: str = Field(sa_type=SafeText, index=True)
    writer: str | None = Field(sa_type=SafeText)
    """The process that writes it, as data/gana/holders.py names it; none when it has ended or no process had a name."""
    error: str | None = Field(sa_type=SafeText)
    model: str | None = Field(sa_type=SafeText)
    created_at: datetime = Field(sa_type=UtcDateTime)
    citations: list[dict[str, Any]] = Field(sa_type=SafeJson)
    content: str = Field(sa_type=SafeText)
    thinking: str = Field(sa_type=SafeText)
    folded: str = Field(sa_type=SafeText)
    """The content as searches compare it."""
