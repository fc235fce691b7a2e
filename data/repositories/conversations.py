"""Conversations in the database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, delete, func, or_, update
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database.columns import storable
from data.database.rows import insert, table, upsert
from data.database.session import Database
from data.database.tables.conversations import ConversationRow, MessageRow
from data.gana.holders import ClaimHolders
from data.repositories.dead_holders import end_claims_of_dead
from data.repositories.full_text import MAX_QUERY_CHARACTERS, MAX_QUERY_WORDS
from domain.entities.conversation import ChatMessage, Conversation
from domain.errors import ConversationNotFound, MessageNotFound
from domain.folding import fold


class SqlConversationRepository:
    """Implements `ConversationRepository`. Without `holders`, who writes an answer is not known."""

    def __init__(self, database: Database, holders: ClaimHolders | None = None) -> None:
        self._database = database
        self._holders = holders

    async def create(self, conversation: Conversation) -> None:
        await self._database.write(lambda session: insert(session, ConversationRow, [_row(conversation)]))

    async def get(self, conversation_id: str) -> Conversation:
        def read(session: Session) -> Conversation:
            row = session.get(ConversationRow, conversation_id)
            if row is None:
                begun = col(ConversationRow.id).startswith(storable(conversation_id), autoescape=True)
                found = session.exec(select(ConversationRow).where(begun).limit(2)).all()
                if len(found) == 2 and conversation_id:
                    raise ConversationNotFound(
                        f"Several conversations begin with {conversation_id}. Give more of the id."
                    )
                if len(found) != 1 or not conversation_id:
                    raise _missing(conversation_id)
                row = found[0]
            return _conversation(row)

        return await self._database.read(read)

    async def update(self, conversation: Conversation) -> None:
        def write(session: Session) -> None:
            _known(session, conversation.id)
            upsert(session, ConversationRow, [_row(conversation)], key=["id"])

        await self._database.write(write)

    async def delete(self, conversation_id: str) -> None:
        def write(session: Session) -> None:
            _known(session, conversation_id)
            rows = table(ConversationRow)
            session.connection().execute(delete(rows).where(rows.c.id == conversation_id))

        await self._database.write(write)

    async def list(self, *, limit: int = 100, offset: int = 0) -> tuple[Conversation, ...]:
        def read(session: Session) -> tuple[Conversation, ...]:
            rows = select(ConversationRow).order_by(*_NEWEST).limit(limit).offset(offset)
            return tuple(map(_conversation, session.exec(rows)))

        return await self._database.read(read)

    async def search(self, text: str, *, limit: int = 50) -> tuple[Conversation, ...]:
        """A title or one message has all the words, or parts of words."""
        words = list(dict.fromkeys(fold(text[:MAX_QUERY_CHARACTERS]).replace("\0", "").split()))[
            :MAX_QUERY_WORDS
        ]

        def read(session: Session) -> tuple[Conversation, ...]:
            titled = [col(ConversationRow.title_folded).contains(word, autoescape=True) for word in words]
            said = [col(MessageRow.folded).contains(word, autoescape=True) for word in words]
            rows = (
                select(ConversationRow)
                .where(
                    or_(
                        and_(*titled),
                        col(ConversationRow.id).in_(select(MessageRow.conversation_id).where(*said)),
                    )
                )
                .order_by(*_NEWEST)
                .limit(limit)
            )
            return tuple(map(_conversation, session.exec(rows)))

        return await self._database.read(read) if words else ()

    async def put_message(self, message: ChatMessage) -> None:
        writer = self._holders.name() if self._holders is not None and message.state == "streaming" else None

        def write(session: Session) -> None:
            conversation = _known(session, message.conversation_id)
            if message.parent_id is not None and not _has(session, message.parent_id):
                raise MessageNotFound(f"There is no message {message.parent_id} to answer.")
            changed: dict[str, Any] = {"changed_at": max(conversation.changed_at, message.created_at)}
            if not _has(session, message.id):
                changed["leaf_id"] = message.id
            upsert(session, MessageRow, [{**_message_row(message), "writer": writer}], key=["id"])
            rows = table(ConversationRow)
            session.connection().execute(
                update(rows).where(rows.c.id == message.conversation_id).values(changed)
            )

        await self._database.write(write)

    async def messages(self, conversation_id: str) -> tuple[ChatMessage, ...]:
        def read(session: Session) -> tuple[ChatMessage, ...]:
            _known(session, conversation_id)
            rows = (
                select(MessageRow)
                .where(MessageRow.conversation_id == conversation_id)
                .order_by(col(MessageRow.number))  # clocks are set back
            )
            return tuple(map(_message, session.exec(rows)))

        found = await self._database.read(read)
        if any(message.state == "streaming" for message in found) and await self._some_ended():
            found = await self._database.read(read)
        return found

    async def version(self, conversation_id: str) -> str:
        def read(session: Session) -> str:
            conversation = _known(session, conversation_id)
            message = table(MessageRow).c
            written = func.sum(func.length(message.content) + func.length(message.thinking))
            states = session.connection().execute(
                select_columns(message.state, func.count(), written)
                .where(message.conversation_id == conversation_id)
                .group_by(message.state)
                .order_by(message.state)
            )
            head = (conversation.title, conversation.manas_id, conversation.model, conversation.leaf_id)
            return repr((*head, [tuple(map(str, row)) for row in states]))

        return await self._database.read(read)

    async def path(self, message_id: str) -> tuple[ChatMessage, ...]:
        def read(session: Session) -> tuple[ChatMessage, ...]:
            of = select(MessageRow.conversation_id).where(MessageRow.id == message_id).scalar_subquery()
            rows = {
                row.id: row
                for row in session.exec(select(MessageRow).where(MessageRow.conversation_id == of))
            }
            if message_id not in rows:
                raise MessageNotFound(f"There is no message {message_id}.")
            # To the first message, however long that is: a beginning that moved would have the model read all anew.
            path: list[ChatMessage] = []
            at: str | None = message_id
            while at is not None and (found := rows.pop(at, None)) is not None:
                path.append(_message(found))
                at = found.parent_id
            return tuple(reversed(path))

        return await self._database.read(read)

    async def settle_streaming(self) -> Sequence[str]:
        def write(session: Session) -> Sequence[str]:
            rows = table(MessageRow)
            settled = update(rows).where(rows.c.state == "streaming").values(state="stopped", writer=None)
            return [
                str(message_id)
                for (message_id,) in session.connection().execute(settled.returning(rows.c.id))
            ]

        return await self._database.write(write)

    async def _some_ended(self) -> bool:
        """Whether a process was killed; then what it left is settled."""
        if self._holders is None or not self._holders.some_died():
            return False
        await self._database.write(lambda session: end_claims_of_dead(session, self._holders))
        return True


_NEWEST = (
    col(ConversationRow.changed_at).desc(),
    col(ConversationRow.created_at).desc(),
    col(ConversationRow.id),
)


def _missing(conversation_id: str) -> ConversationNotFound:
    return ConversationNotFound(f"There is no conversation {conversation_id}.")


def _known(session: Session, conversation_id: str) -> ConversationRow:
    row = session.get(ConversationRow, conversation_id)
    if row is None:
        raise _missing(conversation_id)
    return row


def _has(session: Session, message_id: str) -> bool:
    return session.exec(select(MessageRow.number).where(MessageRow.id == message_id)).first() is not None


def _row(conversation: Conversation) -> dict[str, Any]:
    return {**conversation.model_dump(), "title_folded": fold(conversation.title)}


def _message_row(message: ChatMessage) -> dict[str, Any]:
    return {**message.model_dump(), "folded": fold(message.content)}


def _conversation(row: ConversationRow) -> Conversation:
    return Conversation.model_validate(row.model_dump(exclude={"title_folded"}))


def _message(row: MessageRow) -> ChatMessage:
    return ChatMessage.model_validate(row.model_dump(exclude={"number", "folded", "writer"}))
