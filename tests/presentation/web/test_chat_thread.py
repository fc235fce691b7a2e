"""The rows of a conversation, without a browser."""

import asyncio
import gc
from datetime import UTC, datetime

import pytest
from nicegui import Client, core, ui
from nicegui.page import page

from domain.entities.conversation import ChatMessage, PathMessage
from presentation.web.chat_thread import Thread, ThreadActions


def said(message_id: str) -> PathMessage:
    message = ChatMessage(
        id=message_id,
        conversation_id="c",
        parent_id=None,
        role="user",
        content="Hello",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return PathMessage(message=message, siblings=(message_id,))


def test_what_was_clicked_may_be_gone_by_the_time_its_thread_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(_: object) -> None:
        return None

    async def scenario() -> None:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        client = Client(page(""))
        try:
            with client:
                thread = Thread(
                    ThreadActions(retry=nothing, edit=nothing, branch=nothing, sibling=nothing, halt=nothing)
                )
                place = ui.element("div")
                with place:
                    clicked = ui.element("div")
            with clicked.default_slot:  # as its click is handled
                place.clear()
                del clicked
                gc.collect()
                thread.show([said("one")], None)
        finally:
            client.delete()

    asyncio.run(scenario())
