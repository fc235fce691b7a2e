"""Conversations: listed, shown, branched, renamed. What is shown follows from each message's parent."""

from collections.abc import Sequence

from domain.entities.conversation import ChatMessage, Conversation, ConversationView, PathMessage
from domain.errors import MessageNotFound
from domain.prompts.titles import UNTITLED
from domain.repositories.conversations import ConversationRepository
from domain.repositories.identity import Identities
from domain.repositories.notes import ManasRepository


class BeginConversationUseCase:
    """A conversation that is not kept before its first question, so that looking at an empty one leaves nothing."""

    def __init__(self, identities: Identities, manases: ManasRepository) -> None:
        self._identities = identities
        self._manases = manases

    async def __call__(self, *, manas: str | None = None, model: str | None = None) -> Conversation:
        """`manas` is an id or a name. Raises `ManasNotFound`."""
        manas_id = (await self._manases.get(manas)).id if manas is not None else None
        now = self._identities.now()
        return Conversation(
            id=self._identities.new_id(),
            title=UNTITLED,
            manas_id=manas_id,
            model=model,
            created_at=now,
            changed_at=now,
        )


class ListConversationsUseCase:
    """What has been talked about."""

    def __init__(self, conversations: ConversationRepository) -> None:
        self._conversations = conversations

    async def __call__(self, text: str = "", *, limit: int = 50) -> tuple[Conversation, ...]:
        """Newest change first; with a text those that have it in their title or in what was said."""
        if text.strip():
            return await self._conversations.search(text, limit=limit)
        return await self._conversations.list(limit=limit)


class ShowConversationUseCase:
    """The path that is shown, and where it could have gone otherwise."""

    def __init__(self, conversations: ConversationRepository) -> None:
        self._conversations = conversations

    async def __call__(self, conversation_id: str) -> ConversationView:
        """By id or the beginning of one. Raises `ConversationNotFound`."""
        conversation = await self._conversations.get(conversation_id)
        messages = await self._conversations.messages(conversation.id)
        return ConversationView(conversation=conversation, path=_path(messages, conversation.leaf_id))

    async def messages(self, conversation_id: str) -> tuple[ChatMessage, ...]:
        """Those of every branch, oldest first. Raises `ConversationNotFound`."""
        return await self._conversations.messages(conversation_id)

    async def of_message(self, message_id: str) -> str:
        """The id of the conversation that has this message. Raises `MessageNotFound`."""
        return (await self._conversations.path(message_id))[-1].conversation_id

    async def version(self, conversation_id: str) -> str:
        """Another one after every change of it. Raises `ConversationNotFound`."""
        return await self._conversations.version(conversation_id)


class BranchUseCase:
    """Chooses what is shown, and where the next question goes."""

    def __init__(self, conversations: ConversationRepository) -> None:
        self._conversations = conversations

    async def __call__(
        self, conversation_id: str, message_id: str, *, to_its_end: bool = False
    ) -> Conversation:
        """The path ends at this message, and the next question follows it; with `to_its_end` at the newest message
        below it, which is how a sibling's branch is shown.

        Raises `ConversationNotFound`, `MessageNotFound`.
        """
        conversation = await self._conversations.get(conversation_id)
        messages = await self._conversations.messages(conversation.id)
        if all(message.id != message_id for message in messages):
            raise MessageNotFound(f"The conversation {conversation.title!r} has no message {message_id}.")
        leaf_id = _newest_below(messages, message_id) if to_its_end else message_id
        changed = conversation.model_copy(update={"leaf_id": leaf_id})
        await self._conversations.update(changed)
        return changed


class ChangeConversationUseCase:
    """Its title, its model, its scope."""

    def __init__(self, conversations: ConversationRepository, manases: ManasRepository) -> None:
        self._conversations = conversations
        self._manases = manases

    async def rename(self, conversation_id: str, title: str) -> Conversation:
        """The first 200 characters of one line. Raises `ConversationNotFound`."""
        return await self._change(conversation_id, title=" ".join(title.split())[:200] or UNTITLED)

    async def use_model(self, conversation_id: str, model: str | None) -> Conversation:
        """None: the default model. Raises `ConversationNotFound`."""
        return await self._change(conversation_id, model=model)

    async def use_manas(self, conversation_id: str, manas: str | None) -> Conversation:
        """By id or name; none: all notes. Raises `ConversationNotFound`, `ManasNotFound`."""
        manas_id = (await self._manases.get(manas)).id if manas is not None else None
        return await self._change(conversation_id, manas_id=manas_id)

    async def _change(self, conversation_id: str, **fields: str | None) -> Conversation:
        changed = (await self._conversations.get(conversation_id)).model_copy(update=fields)
        await self._conversations.update(changed)
        return changed


class DeleteConversationUseCase:
    """With everything that was said in it."""

    def __init__(self, conversations: ConversationRepository) -> None:
        self._conversations = conversations

    async def __call__(self, conversation_id: str) -> None:
        """Raises `ConversationNotFound`."""
        await self._conversations.delete((await self._conversations.get(conversation_id)).id)


class SettleInterruptedAnswersUseCase:
    """At start: answers that a dead process was writing are stopped ones, with what there is of them."""

    def __init__(self, conversations: ConversationRepository) -> None:
        self._conversations = conversations

    async def __call__(self) -> int:
        """How many."""
        return len(await self._conversations.settle_streaming())


def _path(messages: Sequence[ChatMessage], leaf_id: str | None) -> tuple[PathMessage, ...]:
    by_id = {message.id: message for message in messages}
    children: dict[str | None, list[str]] = {}
    for message in messages:
        children.setdefault(message.parent_id, []).append(message.id)
    path: list[PathMessage] = []
    while leaf_id is not None and leaf_id in by_id and len(path) < len(messages):
        message = by_id[leaf_id]
        siblings = tuple(children[message.parent_id])
        path.append(PathMessage(message=message, siblings=siblings, goes_on=not path and leaf_id in children))
        leaf_id = message.parent_id
    return tuple(reversed(path))


def _newest_below(messages: Sequence[ChatMessage], message_id: str) -> str:
    """The messages come oldest first, so the last one that is below is the newest."""
    below = {message_id}
    newest = message_id
    for message in messages:
        if message.parent_id in below:
            below.add(message.id)
            newest = message.id
    return newest
