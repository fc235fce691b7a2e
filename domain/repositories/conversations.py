"""Conversations and their messages."""

from collections.abc import Sequence
from typing import Protocol

from domain.entities.conversation import ChatMessage, Conversation


class ConversationRepository(Protocol):
    """Every method is one transaction."""

    async def create(self, conversation: Conversation) -> None: ...

    async def get(self, conversation_id: str) -> Conversation:
        """By id, or by the unambiguous beginning of one. Raises `ConversationNotFound`."""
        ...

    async def update(self, conversation: Conversation) -> None:
        """Replaces title, Manas, model, leaf. Raises `ConversationNotFound`."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """With its messages. Raises `ConversationNotFound`."""
        ...

    async def list(self, *, limit: int = 100, offset: int = 0) -> tuple[Conversation, ...]:
        """Newest change first."""
        ...

    async def search(self, text: str, *, limit: int = 50) -> tuple[Conversation, ...]:
        """By title or by what was said in them; any text is harmless."""
        ...

    async def put_message(self, message: ChatMessage) -> None:
        """Creates or replaces a message and notes the change in its conversation; a new one becomes the leaf there."""
        ...

    async def messages(self, conversation_id: str) -> tuple[ChatMessage, ...]:
        """All branches, oldest first. `streaming` is only what a process still writes, as far as can be told here."""
        ...

    async def version(self, conversation_id: str) -> str:
        """Another one after every change to the conversation or its messages, whoever made it; much cheaper than reading
        them. Raises `ConversationNotFound`."""
        ...

    async def path(self, message_id: str) -> tuple[ChatMessage, ...]:
        """From the first message to this one. Raises `MessageNotFound`."""
        ...

    async def settle_streaming(self) -> Sequence[str]:
        """Marks answers that a dead process left `streaming` as `stopped`; returns their ids. Called at start."""
        ...
