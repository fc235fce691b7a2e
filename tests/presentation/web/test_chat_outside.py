"""What another program writes into a conversation appears on the page that shows it, without a reload."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import expect

from data.settings import Settings
from domain.entities.conversation import ChatMessage
from domain.repositories.conversations import ConversationRepository
from tests.presentation.web.conftest import Desk, Server, Start
from tests.presentation.web.sample import fill
from uniun import build_container


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=fill)


def aside(server: Server, *work: Callable[[ConversationRepository], Coroutine[Any, Any, Any]]) -> None:
    """As a terminal would, beside the running server."""

    async def run() -> None:
        container = build_container(Settings(data_dir=server.data_dir, log_dir=server.data_dir / "log"))
        try:
            for each in work:
                await each(container.conversation_repository())
        finally:
            await container.database().aclose()

    # The browser's own loop runs in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, run()).result()


def message(name: str, parent: str, role: str, content: str, **more: object) -> ChatMessage:
    return ChatMessage.model_validate(
        {"id": name, "conversation_id": "talk-bread", "parent_id": parent, "role": role, "content": content}
        | {"created_at": datetime(2026, 3, 2, tzinfo=UTC), **more}
    )


def test_an_answer_from_a_terminal_grows_on_the_open_page(desk: Desk, server: Server) -> None:
    page = desk.open("/c/talk-bread")
    box = page.get_by_role("textbox", name="Message")
    box.fill("What I am typing meanwhile")
    half = message(
        "a4",
        "q4",
        "assistant",
        "Until it",
        state="streaming",
        citations=[{"number": 1, "note_id": "n", "title": "N"}],
    )
    aside(
        server,
        lambda chats: chats.put_message(message("q4", "a3", "user", "When is it ripe?")),
        lambda chats: chats.put_message(half),
    )
    expect(page.get_by_role("article", name="You").last).to_contain_text("When is it ripe?")
    answer = page.get_by_role("article", name="Shiv").last
    expect(answer).to_contain_text("Until it")
    expect(answer).to_contain_text("Another program is writing this answer")
    expect(answer.get_by_role("button")).to_have_count(0)
    expect(answer.get_by_role("link")).to_have_count(0)
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Send this when it has ended")
    for said, state in (("Until it doubles", "streaming"), ("Until it doubles in four hours.", "complete")):
        aside(
            server,
            lambda chats, said=said, state=state: chats.put_message(  # type: ignore[misc]
                half.model_copy(update={"content": said, "state": state})
            ),
        )
        expect(answer).to_contain_text(said)
    expect(answer).not_to_contain_text("Another program")
    expect(answer.get_by_role("button", name="Answer again")).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="Send this")).to_have_count(0)
    expect(box).to_have_value("What I am typing meanwhile")
    expect(page.get_by_role("article", name="You").filter(has_text="When is it ripe?")).to_have_count(1)


def test_who_reads_further_up_is_not_pulled_down_by_what_grows(desk: Desk, server: Server) -> None:
    page = desk.open("/c/talk-bread")
    half = message("a5", "a3", "assistant", "word " * 2_000, state="streaming")
    aside(server, lambda chats: chats.put_message(half))
    expect(page.get_by_role("article", name="Shiv").last).to_contain_text("word word")
    thread = page.locator(".u-thread")
    # It has been followed to its end before somebody scrolls.
    page.wait_for_function(
        "() => { const box = document.querySelector('.u-thread');"
        " return box.scrollTop > 1000 && box.scrollTop + box.clientHeight > box.scrollHeight - 5; }"
    )
    thread.evaluate("(box) => { box.scrollTop = 10 }")
    aside(
        server,
        lambda chats: chats.put_message(half.model_copy(update={"content": half.content + "and the end"})),
    )
    expect(page.get_by_role("article", name="Shiv").last).to_contain_text("and the end")
    assert thread.evaluate("(box) => box.scrollTop") < 200


def test_beside_a_note_it_appears_too(desk: Desk, server: Server) -> None:
    page = desk.open("/notes/find?name=Sourdough")
    page.wait_for_url(re.compile(r"/notes/(?!find)"))
    page.goto(f"{page.url}?chat=talk-bread")
    page.get_by_role("button", name="Chat", exact=True).click()
    answer = page.get_by_role("article", name="Shiv").last
    expect(answer).to_be_visible()
    box = page.get_by_role("textbox", name="Ask about this note")
    box.fill("What I am typing meanwhile")
    aside(server, lambda chats: chats.put_message(message("a6", "a3", "assistant", "Said in the terminal.")))
    expect(answer).to_contain_text("Said in the terminal.")
    expect(box).to_have_value("What I am typing meanwhile")


def test_a_conversation_that_is_deleted_elsewhere_says_so(desk: Desk, server: Server) -> None:
    page = desk.open("/c/talk-bread")
    expect(page.get_by_role("article", name="Shiv").last).to_be_visible()
    aside(server, lambda chats: chats.delete("talk-bread"))
    expect(page.get_by_role("heading", name="This conversation was deleted")).to_be_visible()
