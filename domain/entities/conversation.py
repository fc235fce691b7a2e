"""Conversations that branch."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.llm import GenerationEvent

MessageState = Literal["complete", "streaming", "stopped", "failed"]


class Citation(Entity):
    """A note that an answer drew on; `number` is how the answer refers to it."""

    number: int
    note_id: str
    title: str
    written_by: str | None = None
    """The name that the Gana which wrote the note had then; empty for one that was gone, none for the user's own notes."""


class Draft(Entity):
    """The note that is being written beside a chat, as it stands in the editor."""

    title: str = Field(default="", max_length=500)
    text: str = Field(default="", max_length=10_000_000)
    selection: tuple[int, int] | None = None
    """Start and end in the text, in characters; the same twice is the cursor."""

    @property
    def selected(self) -> str:
        """The words of the selection; empty when there is none."""
        return self.text[slice(*self.selection)] if self.selection is not None else ""


class ThinkingDelta(Entity):
    """New text of a `<think>` part, folded away from the answer."""

    type: Literal["thinking"] = "thinking"
    text: str


class AnswerBegun(Entity):
    """The first thing that an answer tells: the ids of both messages, and what it may cite."""

    type: Literal["begun"] = "begun"
    question_id: str
    answer_id: str
    citations: tuple[Citation, ...]
    hindrance: str | None
    """Why the notes could not be searched as well as usual; none when they could."""


class AnswerUnkept(Entity):
    """The answer has ended, and the database cannot take it yet. It is tried again; until then it is nowhere else."""

    type: Literal["unkept"] = "unkept"
    reason: str


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
    """`streaming`: some process is writing it, or was killed and nobody has noticed yet; the part that is kept is true."""
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


class PathMessage(Entity):
    """A message on the path that is shown, and the others that stand at the same place on other branches."""

    message: ChatMessage
    siblings: tuple[str, ...]
    """Ids, oldest first; the message itself is among them."""
    goes_on: bool = False
    """Whether it is the last that is shown, and others follow it all the same."""


class ConversationView(Entity):
    """A conversation as it is shown: the path from its first message to its leaf."""

    conversation: Conversation
    path: tuple[PathMessage, ...]


AnswerEvent = AnswerBegun | ThinkingDelta | AnswerUnkept | GenerationEvent
"""What a chat sees of an answer: everything that happens to its job, with the thinking apart."""
