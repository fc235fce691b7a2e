"""Conversations that are longer than anybody's."""

from typing import Any

from data.database.rows import insert
from data.database.session import Database
from data.database.tables.conversations import MessageRow
from data.repositories.conversations import SqlConversationRepository
from domain.entities.conversation import Conversation
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import at

MESSAGES = 10_050


def test_a_path_begins_with_the_first_message_however_long_it_is(run: Run) -> None:
    """What the model has read of it is kept; a beginning that moved on with each turn would have it read all anew."""

    async def test(database: Database) -> None:
        chats = SqlConversationRepository(database)
        await chats.create(Conversation(id="c", title="", created_at=at(0), changed_at=at(0)))
        rows: list[dict[str, Any]] = [
            {
                "id": f"m{number}",
                "conversation_id": "c",
                "parent_id": f"m{number - 1}" if number else None,
                "role": "assistant" if number % 2 else "user",
                "state": "complete",
                "created_at": at(number),
                "citations": [],
                "content": "Text.",
                "thinking": "",
                "folded": "text.",
            }
            for number in range(MESSAGES)
        ]
        await database.write(lambda session: insert(session, MessageRow, rows))
        path = await chats.path(f"m{MESSAGES - 1}")
        assert [message.id for message in path] == [f"m{number}" for number in range(MESSAGES)]

    run(test)
