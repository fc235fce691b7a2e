"""Conversations in dictionaries."""

from collections.abc import Sequence

from domain.entities.conversation import ChatMessage, Conversation
from domain.errors import ConversationNotFound, MessageNotFound


class MemoryConversations:
    """Implements `ConversationRepository`. `written` counts what a database would have written."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}
        self._messages: dict[str, ChatMessage] = {}
        self.written: list[ChatMessage] = []

    async def create(self, conversation: Conversation) -> None:
        self._conversations[conversation.id] = conversation

    async def get(self, conversation_id: str) -> Conversation:
        found = self._conversations.get(conversation_id)
        if found is None:
            begun = [
                c
                for key, c in self._conversations.items()
                if conversation_id and key.startswith(conversation_id)
            ]
            if len(begun) != 1:
                raise ConversationNotFound(f"There is no conversation {conversation_id}.")
            found = begun[0]
        return found

    async def update(self, conversation: Conversation) -> None:
        self._known(conversation.id)
        self._conversations[conversation.id] = conversation

    async def delete(self, conversation_id: str) -> None:
        self._known(conversation_id)
        del self._conversations[conversation_id]
        self._messages = {
            key: message
            for key, message in self._messages.items()
            if message.conversation_id != conversation_id
        }

    async def list(self, *, limit: int = 100, offset: int = 0) -> tuple[Conversation, ...]:
        newest = sorted(self._conversations.values(), key=lambda c: c.changed_at, reverse=True)
        return tuple(newest[offset : offset + limit])

    async def search(self, text: str, *, limit: int = 50) -> tuple[Conversation, ...]:
        wanted = text.casefold()
        said = {m.conversation_id for m in self._messages.values() if wanted in m.content.casefold()}
        found = [c for c in await self.list(limit=10_000) if c.id in said or wanted in c.title.casefold()]
        return tuple(found[:limit])

    async def put_message(self, message: ChatMessage) -> None:
        conversation = self._known(message.conversation_id)
        leaf_id = conversation.leaf_id if message.id in self._messages else message.id
        self._messages[message.id] = message
        self.written.append(message)
        self._conversations[conversation.id] = conversation.model_copy(
            update={"leaf_id": leaf_id, "changed_at": max(conversation.changed_at, message.created_at)}
        )

    async def messages(self, conversation_id: str) -> tuple[ChatMessage, ...]:
        self._known(conversation_id)
        return tuple(m for m in self._messages.values() if m.conversation_id == conversation_id)

    async def version(self, conversation_id: str) -> str:
        return repr((self._known(conversation_id), await self.messages(conversation_id)))

    async def path(self, message_id: str) -> tuple[ChatMessage, ...]:
        path: list[ChatMessage] = []
        at: str | None = message_id
        while at is not None:
            if at not in self._messages:
                raise MessageNotFound(f"There is no message {at}.")
            path.append(self._messages[at])
            at = self._messages[at].parent_id
        return tuple(reversed(path))

    async def settle_streaming(self) -> Sequence[str]:
        left = [m for m in self._messages.values() if m.state == "streaming"]
        for message in left:
            self._messages[message.id] = message.model_copy(update={"state": "stopped"})
        return [message.id for message in left]

    def _known(self, conversation_id: str) -> Conversation:
        if conversation_id not in self._conversations:
            raise ConversationNotFound(f"There is no conversation {conversation_id}.")
        return self._conversations[conversation_id]
