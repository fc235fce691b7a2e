"""Conversations that branch."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity

MessageState = Literal["complete", "streaming", "stopped", "failed"]


class Citation(Entity):
    """A note that an answer drew on; `number` is how the answer refers to it."""

    number: int
    note_id: str
    title: str


class ChatMessage(Entity):
    """One message; its parent says which branch it is on."""

    id: str
    conversation_id: str
    parent_id: str | None
    """None for the first message of the conversation."""
    role: Literal["user", "assistant"]
    content: str
    thinking: str = ""
    """The folded-away `<think>` part of an answer."""
    state: MessageState = "complete"
    """`streaming` after a restart means that the program died while answering; the part that is kept is true."""
    error: str | None = None
    model: str | None = None
    citations: tuple[Citation, ...] = ()
    created_at: datetime


class Conversation(Entity):
    """A chat. `leaf_id` is the end of the path that is shown."""

    id: str
    title: str = Field(max_length=200)
    manas_id: str | None = None
    model: str | None = None
    """None: the default model."""
    leaf_id: str | None = None
    created_at: datetime
    changed_at: datetime
