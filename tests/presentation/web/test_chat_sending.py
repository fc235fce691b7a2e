"""What becomes of a question between the field and the database, on lines that break and beside other tabs."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Browser, Locator, Page, expect

from domain.entities.conversation import ChatMessage, Conversation
from tests.presentation.web.conftest import Desk, Server, Start, desk_before

ASKED = "0123456789abcdef" * 2
NEVER_ASKED = "f" * 32
LONG = "Say: " + " ".join(map(str, range(250)))
SWALLOW = """() => {
  const emit = window.socket.emit.bind(window.socket);
  window.swallowed = 0;
  window.socket.emit = (...told) => { window.swallowed += 1; };
  window.cut = () => { window.socket.emit = emit; window.socket.io.engine.close(); };
}"""
"""A line that is dead already and does not know it; `cut` ends it, and another one is made."""
DEAF = """() => {
  const emit = window.socket.emit.bind(window.socket);
  window.swallowed = 0;
  window.socket.emit = (...told) => { window.swallowed += 1; };
  window.hear = () => { window.socket.emit = emit; };
}"""
HASTY = """{
  const every = window.setInterval;
  window.setInterval = (work, ms, ...more) => every(work, ms / 50, ...more);
}"""
"""The composer insists sooner. A clock that is not the world's would end the connection, which is kept by it, too."""
TWICE = """() => {
  const emit = window.socket.emit.bind(window.socket);
  window.socket.emit = (...told) => { emit(...told); emit(...told); };
}"""

OVERHEAR = """() => {
  const keep = Storage.prototype.setItem;
  Storage.prototype.setItem = function (key, value) {
    if (key.startsWith("uniun-sent:")) window.asked = key.slice("uniun-sent:".length);
    keep.call(this, key, value);
  };
}"""


async def talks(container: DeclarativeContainer) -> None:
    conversations = container.conversation_repository()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for name, model in (("asked", None), ("gone", "gone"), ("branched", None)):
        await conversations.create(
            Conversation(id=name, title=name, model=model, created_at=at, changed_at=at)
        )
        before = None
        for number, text in enumerate(("First?", "One.", "Second?", "Two.")):
            message_id = ASKED if name == "asked" and number == 2 else f"{name}{number}"
            await conversations.put_message(
                ChatMessage(
                    id=message_id,
                    conversation_id=name,
                    parent_id=before,
                    role="assistant" if number % 2 else "user",
                    content=text,
                    created_at=at,
                )
            )
            before = message_id


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=talks)


@pytest.fixture(scope="module")
def crawl(start: Start) -> Server:
    """Two tokens a second: a long answer has not ended by the time that it is stopped."""
    return start(tokens_per_s=2)


@pytest.fixture
def crawl_desk(browser: Browser, crawl: Server) -> Iterator[Desk]:
    yield from desk_before(browser, crawl)


async def one_note(container: DeclarativeContainer) -> None:
    await container.notes_controller().add("Bread needs time.", title="Bread", tags=[])


@pytest.fixture
def noted_desk(browser: Browser, start: Start) -> Iterator[Desk]:
    """With notes an answer fails before it has begun."""
    yield from desk_before(browser, start(seed=one_note))


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


def ask(page: Page, text: str) -> None:
    field(page).fill(text)
    field(page).press("Enter")


def kept_here(page: Page) -> list[str]:
    """What the browser would offer after a reload."""
    kept = page.evaluate("Object.entries(localStorage).filter(([key]) => key.startsWith('uniun-'))")
    return [key for key, value in kept if "uniun-draft" in key or "uniun-sent" in key]


def test_a_question_that_a_dead_line_swallowed_is_asked_once_on_the_next(desk: Desk) -> None:
    page = desk.open("/")
    page.evaluate(SWALLOW)
    ask(page, "Say: Not lost.")
    page.wait_for_function("window.swallowed > 0")
    expect(field(page)).to_have_value("")
    ask(page, "Typed since")
    expect(page.get_by_role("alert")).to_have_text(
        "Your last question is still on its way. Send this when it is there."
    )
    page.evaluate("window.cut()")
    expect(page.locator(".u-answer .u-prose")).to_have_text("Not lost.")
    expect(page.locator(".u-bubble")).to_have_count(1)
    page.wait_for_url("**/c/*")
    expect(field(page)).to_have_value("Typed since")
    page.reload()
    expect(page.locator(".u-bubble")).to_have_text(["Say: Not lost."])
    expect(field(page)).to_have_value("Typed since")
    desk.complaints.clear()


def test_a_question_that_is_told_twice_is_asked_once(desk: Desk) -> None:
    page = desk.open("/")
    page.evaluate(TWICE)
    ask(page, "Say: Once only.")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    ask(page, "Say: And then.")
    expect(page.locator(".u-answer .u-prose")).to_have_text(["Once only.", "And then."])
    page.reload()
    expect(page.locator(".u-bubble")).to_have_text(["Say: Once only.", "Say: And then."])
    expect(page.get_by_role("link", name="Say: Once only.")).to_have_count(1)


def test_a_question_that_the_server_never_speaks_of_comes_back(desk: Desk) -> None:
    desk.context.add_init_script(HASTY)
    page = desk.open("/")
    page.evaluate(DEAF)
    ask(page, "Say: Back again.")
    page.wait_for_function("window.swallowed > 0")
    expect(field(page)).to_have_value("Say: Back again.")
    expect(page.get_by_role("alert")).to_contain_text("The server does not say whether it has your question.")
    page.evaluate("window.hear()")
    field(page).press("Enter")
    expect(page.locator(".u-bubble")).to_have_text(["Say: Back again."])
    expect(field(page)).to_have_value("")


def sent_earlier(page: Page, question_id: str, text: str, draft_key: str = "new") -> None:
    said = json.dumps({"key": draft_key, "text": text, "editing": None})
    page.evaluate("([key, value]) => localStorage.setItem(key, value)", [f"uniun-sent:{question_id}", said])
    page.reload()


def began(page: Page, draft_key: str, address: str) -> None:
    page.evaluate(
        "(told) => sessionStorage.setItem('uniun-begun-at', told)", json.dumps([draft_key, address])
    )


def test_after_a_reload_a_question_that_came_is_shown_and_not_offered_again(page: Page) -> None:
    sent_earlier(page, ASKED, "Second?")
    page.wait_for_url("**/c/asked")
    expect(page.locator(".u-bubble")).to_have_text(["First?", "Second?"])
    expect(field(page)).to_have_value("")
    assert kept_here(page) == []


def test_a_reload_that_was_under_way_when_the_conversation_began_leads_there(page: Page) -> None:
    began(page, "new", "/c/asked")
    page.reload()
    page.wait_for_url("**/c/asked")
    expect(page.locator(".u-bubble")).to_have_text(["First?", "Second?"])
    assert page.evaluate("sessionStorage.getItem('uniun-begun-at')") is None


def test_beside_a_note_a_reload_brings_back_the_conversation_that_had_begun(noted_desk: Desk) -> None:
    page = noted_desk.open("/notes/find?name=Bread")
    page.wait_for_url(re.compile("/notes/[0-9a-f]{32}"))
    page.wait_for_function("window.did_handshake === true")
    note = page.url.rpartition("/")[2]
    page.get_by_role("button", name="Chat", exact=True).click()
    page.evaluate(OVERHEAR)
    box = page.get_by_role("textbox", name="Ask about this note")
    box.fill("Say: Here it is.")
    box.press("Enter")
    page.wait_for_url("**?chat=*")
    question = page.evaluate("window.asked")
    answered = page.get_by_role("button", name="Insert into note")
    expect(answered).to_be_visible()
    conversation = page.url

    page.goto(f"/notes/{note}")  # a new conversation; the reload came before the address was changed
    began(page, f"note/{note}", conversation.removeprefix(noted_desk.base))
    page.reload()
    page.wait_for_url(conversation)
    expect(answered).to_be_visible()

    page.goto(f"/notes/{note}")
    sent_earlier(page, question, "Say: Here it is.", f"note/{note}")
    page.wait_for_url(conversation)
    expect(answered).to_be_visible()
    assert kept_here(page) == []

    box.fill("Say: More.")
    box.press("Enter")
    expect(page.locator(".u-answer .u-prose")).to_have_text(["Here it is.", "More."])
    expect(answered).to_be_visible()
    page.get_by_role("article", name="Shiv").first.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".u-answer")).to_have_count(1)
    page.locator(".u-composer").get_by_role("button", name="Cancel").click()
    expect(page.locator(".u-answer")).to_have_count(2)
    expect(page.get_by_text("What you write next begins a new branch here.")).to_have_count(0)

    page.get_by_role("button", name="New chat").click()
    expect(page.locator(".u-bubble")).to_have_count(0)
    expect(box).to_be_focused()
    page.reload()
    page.wait_for_function("window.did_handshake === true")
    expect(page.get_by_role("button", name="About", exact=True)).to_have_attribute("aria-pressed", "true")
    assert page.url == f"{noted_desk.base}/notes/{note}"
    page.goto(conversation)
    page.get_by_role("link", name="Open as a page").click()
    page.wait_for_url("**/c/*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Say: Here it is.")


def test_after_a_reload_a_question_that_did_not_come_is_back(page: Page) -> None:
    sent_earlier(page, NEVER_ASKED, "Say: Nobody heard it.")
    expect(field(page)).to_have_value("Say: Nobody heard it.")
    expect(page.get_by_text("Your last question had not arrived. It is back here.")).to_be_visible()
    field(page).press("Enter")
    expect(page.locator(".u-answer .u-prose")).to_have_text("Nobody heard it.")
    page.wait_for_url("**/c/*")
    page.reload()
    expect(page.locator(".u-bubble")).to_have_count(1)
    assert kept_here(page) == []


def test_a_first_question_that_fails_stands_in_its_conversation_and_not_in_the_field(
    noted_desk: Desk,
) -> None:
    models = noted_desk.open("/models")
    models.get_by_role("button", name="Remove tiny").click()
    models.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(models.get_by_role("button", name="Remove tiny")).to_have_count(0)
    page = noted_desk.open("/")
    ask(page, "Say: Failed.")
    banner = page.locator(".u-ending.u-banner")
    expect(banner).to_contain_text("The answer failed. There is no model tiny.")
    expect(banner.get_by_role("link", name="Open the models page")).to_be_visible()
    expect(page.locator(".u-bubble")).to_have_text("Say: Failed.")
    expect(page.get_by_role("heading", level=1)).to_have_text("Say: Failed.")
    page.wait_for_url("**/c/*")
    expect(field(page)).to_have_value("")
    page.wait_for_function("!Object.keys(localStorage).some((key) => key.startsWith('uniun-'))")


def test_the_failure_for_want_of_a_model_leads_to_the_models(desk: Desk) -> None:
    page = desk.open("/c/gone")
    ask(page, "Third?")
    banner = page.locator(".u-ending.u-banner")
    expect(banner.get_by_role("link", name="Open the models page")).to_have_attribute("href", "/models")
    expect(banner.get_by_role("link")).to_have_count(1)
    expect(field(page)).to_have_value("")


def test_a_browser_whose_store_is_full_asks_once(page: Page) -> None:
    page.evaluate(
        "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; }"
    )
    ask(page, "Say: Once.")
    expect(field(page)).to_have_value("")
    expect(page.locator(".u-answer .u-prose")).to_have_text("Once.")
    expect(page.locator(".u-bubble")).to_have_count(1)


def test_half_a_character_is_asked_without_it(page: Page) -> None:
    field(page).evaluate(
        "(box) => { box.value = 'Say: cut \\ud83d.'; box.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    field(page).press("Enter")
    expect(page.locator(".u-answer .u-prose")).to_have_text("cut \ufffd.")


def test_a_question_that_is_being_put_differently_survives_a_reload(desk: Desk) -> None:
    page = desk.open("/c/branched")
    page.get_by_role("button", name="Ask differently").last.click()
    field(page).fill("Say: Otherwise.")
    page.reload()
    expect(field(page)).to_have_value("Say: Otherwise.")
    expect(page.get_by_text("Asking differently")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(field(page)).to_have_value("")
    page.reload()
    expect(page.get_by_role("button", name="Ask differently").last).to_be_visible()
    expect(page.get_by_text("Asking differently")).to_be_hidden()


def test_whoever_stops_an_answer_can_type_at_once(crawl_desk: Desk) -> None:
    page = crawl_desk.open("/")
    ask(page, LONG)
    expect(page.locator(".u-answer")).to_contain_text("1 2")
    page.get_by_role("button", name="Stop the answer").click()
    expect(page.locator(".u-ending")).to_contain_text("Stopped")
    expect(field(page)).to_be_focused()


def test_a_question_that_is_too_long_is_refused_and_stays(page: Page) -> None:
    text = "long " * 20_001
    ask(page, text)
    expect(page.get_by_role("alert")).to_contain_text(
        "This has 100,005 characters, and a question may have 100,000."
    )
    expect(field(page)).to_have_value(text)
    expect(page.locator(".u-bubble")).to_have_count(0)


def test_what_another_tab_keeps_survives_that_this_ones_question_is_taken(crawl_desk: Desk) -> None:
    first = crawl_desk.open("/")
    ask(first, "Say: Here.")
    expect(first.get_by_role("button", name="Answer again")).to_be_visible()
    first.wait_for_url("**/c/*")
    second = crawl_desk.open("/c/" + first.url.rpartition("/c/")[2])
    field(first).fill(LONG)
    field(second).fill("From the other tab")
    field(first).press("Enter")
    expect(first.locator(".u-answer").last).to_contain_text("1 2")
    first.wait_for_function("!Object.keys(localStorage).some((key) => key.startsWith('uniun-sent'))")
    second.reload()
    expect(field(second)).to_have_value("From the other tab")
    first.get_by_role("button", name="Stop the answer").click()
    expect(first.locator(".u-ending")).to_contain_text("Stopped")


def test_two_new_chats_have_a_draft_each_and_one_that_was_left_is_offered(desk: Desk) -> None:
    first = desk.open("/")
    field(first).fill("Of the first.")
    second = desk.open("/")
    expect(field(second)).to_have_value("")
    field(second).fill("Of the second.")
    field(first).fill("Of the first, and more.")
    for page, text in ((first, "Of the first, and more."), (second, "Of the second.")):
        page.reload()
        page.wait_for_function("window.did_handshake === true")
        expect(field(page)).to_have_value(text)
    field(first).fill("Say: First.")
    field(first).press("Enter")
    expect(first.locator(".u-answer .u-prose")).to_have_text("First.")
    expect(field(second)).to_have_value("Of the second.")
    field(second).fill("Of the second, which is closed.")
    second.close()
    expect(field(desk.open("/"))).to_have_value("Of the second, which is closed.")


def test_where_the_rest_is_hidden_it_says_so_and_can_be_shown(desk: Desk) -> None:
    page = desk.open("/c/branched")
    goes_on = page.get_by_text("The conversation goes on after this.")
    expect(goes_on).to_be_hidden()
    page.get_by_role("article", name="Shiv").first.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".u-answer")).to_have_count(1)
    expect(goes_on).to_be_visible()
    page.locator(".u-composer").get_by_role("button", name="Cancel").click()
    expect(page.locator(".u-answer")).to_have_count(2)
    expect(goes_on).to_be_hidden()
    expect(page.get_by_text("What you write next begins a new branch here.")).to_have_count(0)

    page.get_by_role("article", name="Shiv").first.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".u-answer")).to_have_count(1)
    page.reload()
    expect(goes_on).to_be_visible()
    # Also in another tab, and after a reload.
    other = desk.open("/c/branched")
    for tab in (page, other):
        expect(tab.get_by_text("What you write next begins a new branch here.")).to_be_visible()
    other.locator(".u-composer").get_by_role("button", name="Cancel").click()
    for tab in (page, other):
        expect(tab.locator(".u-answer")).to_have_count(2)
        expect(tab.get_by_text("What you write next begins a new branch here.")).to_have_count(0)
    page.get_by_role("article", name="Shiv").first.get_by_role("button", name="Go on from here").click()
    page.get_by_role("button", name="Show the rest").click()
    expect(page.locator(".u-answer")).to_have_count(2)
    expect(goes_on).to_be_hidden()
