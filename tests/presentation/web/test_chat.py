"""The chat in a browser, over an engine that says what it is told."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Browser, Page, expect

from data.rest import shares_cores
from domain.entities.conversation import ChatMessage, Citation, Conversation
from tests.presentation.web.conftest import Desk, Server, Start, desk_before
from tests.presentation.web.crowd import CROWD, GONE
from tests.presentation.web.trace import follow_trace

COUNTED = " ".join(
    [
        "one two three four five six seven eight nine ten eleven twelve",
        *(str(number) for number in range(13, 40)),
    ]
)
COUNT = f"Say: {COUNTED}"
MANY = f"{COUNTED} {' '.join(str(number) for number in range(40, 250))}"
LONG = f"Say: {MANY}"
LATE = """() => {
  const emit = window.socket.emit.bind(window.socket);
  window.late = [];
  window.socket.emit = (...told) => window.late.push(() => emit(...told));
  window.on = () => { window.socket.emit = emit; window.late.forEach((tell) => tell()); };
}"""
"""As on a machine that takes its time: what the page tells the server comes late, when `on` is called."""


@pytest.fixture(scope="module")
def slow(start: Start) -> Server:
    """Ten tokens a second: an answer of forty words takes four seconds. Two jobs of a conversation may wait."""
    return start(tokens_per_s=10, scheduler__max_queued_per_flow=2)


@pytest.fixture(scope="module")
def crawl(start: Start) -> Server:
    """Two tokens a second: a long answer has not ended by the time that it is stopped, however slow the browser."""
    return start(tokens_per_s=2)


@pytest.fixture
def crawl_desk(browser: Browser, crawl: Server) -> Iterator[Desk]:
    yield from desk_before(browser, crawl)


@pytest.fixture
def slow_desk(browser: Browser, slow: Server) -> Iterator[Desk]:
    yield from desk_before(browser, slow)


async def long_talk(container: DeclarativeContainer) -> None:
    conversations = container.conversation_repository()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    await conversations.create(Conversation(id="long", title="Long", created_at=at, changed_at=at))
    for number in range(300):
        role = "assistant" if number % 2 else "user"
        await conversations.put_message(
            ChatMessage(
                id=f"m{number}",
                conversation_id="long",
                parent_id=f"m{number - 1}" if number else None,
                role=role,
                content=f"{'answer' if number % 2 else 'question'} {number}",
                created_at=at,
            )
        )


async def talk_from_ganas_notes(container: DeclarativeContainer) -> None:
    conversations = container.conversation_repository()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    await conversations.create(Conversation(id="cited", title="Cited", created_at=at, changed_at=at))
    writers = (None, "Morning digest", "")
    await conversations.put_message(
        ChatMessage(
            id="c0",
            conversation_id="cited",
            parent_id=None,
            role="assistant",
            content="As it says [1, 2, 3].",
            citations=tuple(
                Citation(number=number, note_id=f"n{number}", title=f"Note {number}", written_by=writer)
                for number, writer in enumerate(writers, start=1)
            ),
            created_at=at,
        )
    )
    await conversations.put_message(
        ChatMessage(
            id="c1",
            conversation_id="cited",
            parent_id="c0",
            role="assistant",
            content="[2].",
            citations=(Citation(number=2, note_id="n2", title="Note 2"),),
            created_at=at,
        )
    )


async def talks(container: DeclarativeContainer) -> None:
    await long_talk(container)
    await talk_from_ganas_notes(container)


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=talks)


def ask(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message")
    box.fill(text)
    box.press("Enter")


def address(page: Page) -> str:
    """Of the conversation, once the page has one."""
    page.wait_for_url("**/c/*")
    return "/c/" + page.url.rpartition("/c/")[2]


def test_a_question_is_answered_and_kept(page: Page) -> None:
    ask(page, "Say: Bread needs **time** and salt.")
    expect(page.locator(".u-answer strong")).to_have_text("time")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    address(page)
    page.reload()
    expect(page.locator(".u-answer")).to_contain_text("Bread needs time and salt.")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    expect(page.get_by_role("link", name="Say: Bread needs")).to_have_attribute("aria-current", "page")


def test_a_source_that_a_gana_wrote_says_so(desk: Desk) -> None:
    page = desk.open("/c/cited")
    expect(page.locator(".u-answer").first.locator(".u-source")).to_have_text(
        ["1Note 1", "2Note 2written by Gana Morning digest", "3Note 3written by a Gana"]
    )


def test_an_answer_that_is_nothing_but_a_citation_is_told_as_such(desk: Desk) -> None:
    answer = desk.open("/c/cited").locator(".u-answer").last
    expect(answer).to_contain_text("It only pointed to what it read:")
    expect(answer.locator(".u-source")).to_have_text("2Note 2")
    expect(answer.locator(".u-prose")).to_have_count(0)


def test_a_chat_that_waits_for_another_names_it_and_can_stop_it(crawl_desk: Desk) -> None:
    first = crawl_desk.open("/")
    ask(first, LONG)
    expect(first.locator(".u-answer")).to_contain_text("two")
    second = crawl_desk.open("/")
    ask(second, "Say: Mine.")
    expect(second.locator(".u-waiting")).to_contain_text("Waiting for the chat “Say: one two three")
    expect(second.get_by_role("link", name="Go to that chat")).to_have_attribute("href", address(first))
    # Right below the question and its row of buttons.
    asked, waits = second.locator(".u-bubble").bounding_box(), second.locator(".u-waiting").bounding_box()
    assert asked
    assert waits
    assert waits["y"] - (asked["y"] + asked["height"]) < 80

    # Before there is a word of it.
    second.get_by_role("button", name="Stop the answer").click()
    for reloaded in (False, True):
        if reloaded:
            second.reload()
        expect(second.locator(".u-ending")).to_have_text("Stopped before it began.Try again")
        expect(second.get_by_role("button", name="Answer again")).to_have_count(0)
    second.get_by_role("button", name="Try again").click()
    second.get_by_role("button", name="Stop its answer").click()
    expect(first.locator(".u-ending")).to_contain_text("Stopped. What there is of the answer is kept.")
    expect(second.locator(".u-answer .u-prose").last).to_have_text("Mine.")
    expect(second.get_by_role("link", name="Go to that chat")).to_have_count(0)


def test_a_reload_in_mid_answer_loses_nothing(slow: Server, slow_desk: Desk) -> None:
    page = slow_desk.open("/")
    ask(page, COUNT)
    expect(page.locator(".u-answer")).to_contain_text("five")
    page.reload()
    expect(page.locator(".u-answer")).to_contain_text("one two three four five")
    expect(page.locator(".u-answer .u-prose")).to_have_text(COUNTED)
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()


def test_settings_of_the_model_that_are_changed_in_mid_answer_lose_nothing(slow_desk: Desk) -> None:
    page = slow_desk.open("/")
    ask(page, COUNT)
    expect(page.locator(".u-answer")).to_contain_text("five")
    settings = slow_desk.open("/settings")
    cores = settings.get_by_label("Processor cores for the model, cores")
    cores.fill("1")
    cores.press("Enter")
    expect(settings.get_by_text("Kept. The model is loaded anew with it")).to_be_visible()
    expect(page.locator(".u-answer .u-prose")).to_have_text(COUNTED)
    settings.goto("/scheduler")
    expect(settings.locator("body")).to_contain_text("the model is loaded anew, as its settings were changed")


def test_an_import_lets_an_answer_go_first_and_says_so(slow_desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "willow.md").write_text("# Willow\n\nIt leans over the river.")
    page, notes = slow_desk.open("/"), slow_desk.open("/notes/import")
    ask(page, LONG)
    expect(page.locator(".u-answer")).to_contain_text("two")
    path = notes.get_by_role("textbox", name="Path of the folder")
    path.fill(str(tmp_path))
    path.press("Enter")
    if shares_cores():
        expect(notes.get_by_text("An answer goes first.")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(notes.get_by_text("1 new")).to_be_visible()


def test_a_killed_tab_in_mid_answer_loses_nothing(slow_desk: Desk) -> None:
    page = slow_desk.open("/")
    ask(page, COUNT)
    expect(page.locator(".u-answer")).to_contain_text("three")
    path = address(page)
    page.close()
    again = slow_desk.open(path)
    expect(again.locator(".u-answer .u-prose")).to_have_text(COUNTED)
    expect(again.get_by_role("button", name="Answer again")).to_be_visible()


def test_two_tabs_see_the_same(crawl_desk: Desk) -> None:
    first = crawl_desk.open("/")
    ask(first, LONG)
    expect(first.locator(".u-answer")).to_contain_text("two")
    second = crawl_desk.open(address(first))
    expect(second.locator(".u-answer")).to_contain_text("two three")
    second.get_by_role("button", name="Stop the answer").click()
    for page in (first, second):
        expect(page.locator(".u-ending")).to_contain_text("Stopped")
    ask(second, "Say: Once more.")
    expect(first.locator(".u-answer").last).to_contain_text("Once more.")
    first.get_by_role("button", name="More about this conversation").click()
    first.get_by_role("menuitem", name="Rename").click()
    first.get_by_role("textbox", name="Title").fill("Counting")
    first.get_by_role("button", name="Rename").click()
    expect(second.get_by_role("heading", level=1)).to_have_text("Counting")
    second.get_by_role("button", name="More about this conversation").click()
    second.get_by_role("menuitem", name="Delete").click()
    second.get_by_role("button", name="Delete").click()
    expect(first.get_by_role("heading", name="This conversation was deleted")).to_be_visible()
    expect(second).to_have_url(crawl_desk.base + "/")
    expect(second.get_by_role("link", name="Counting")).to_have_count(0)


def test_what_there_is_survives_the_server(crawl: Server, crawl_desk: Desk) -> None:
    page = crawl_desk.open("/")
    ask(page, LONG)
    expect(page.locator(".u-answer")).to_contain_text("five")
    address(page)
    page.get_by_role("textbox", name="Message").fill("not sent yet")
    crawl.restart()
    expect(page.locator(".u-ending")).to_contain_text("Stopped")
    expect(page.locator(".u-answer")).to_contain_text("one two three four five")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("not sent yet")
    crawl_desk.complaints.clear()


def test_retry_edit_and_branches(page: Page) -> None:
    ask(page, "Say: First.")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    page.get_by_role("button", name="Answer again").click()
    expect(page.get_by_text("2 / 2")).to_be_visible()
    page.get_by_role("button", name="The one before").click()
    expect(page.get_by_text("1 / 2")).to_be_visible()
    page.get_by_role("button", name="Ask differently").click()
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_have_value("Say: First.")
    box.fill("Say: Second.")
    box.press("Enter")
    expect(page.locator(".u-answer .u-prose")).to_have_text("Second.")
    ask(page, "Say: Third.")
    expect(page.locator(".u-answer .u-prose").last).to_have_text("Third.")
    page.get_by_role("article", name="Shiv").first.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".u-answer")).to_have_count(1)
    branching = page.get_by_text("What you write next begins a new branch here.")
    expect(branching).to_be_visible()
    expect(box).to_be_focused()
    ask(page, "Say: Fourth.")
    expect(branching).to_have_count(0)
    expect(page.locator(".u-answer .u-prose").last).to_have_text("Fourth.")
    page.get_by_role("button", name="More about this conversation").click()
    page.get_by_role("menuitem", name="Branches").click()
    nodes = page.locator(".u-node")
    expect(nodes).to_have_count(9)
    nodes.filter(has_text="Third.").last.click()
    expect(page.locator(".u-answer .u-prose").last).to_have_text("Third.")


def test_only_part_of_a_long_conversation_is_drawn(desk: Desk) -> None:
    page = desk.open("/c/long")
    expect(page.locator(".u-message")).to_have_count(30)
    expect(page.locator(".u-message").last).to_contain_text("answer 299")
    page.get_by_role("button", name="Show earlier messages").click()
    expect(page.locator(".u-message")).to_have_count(60)


HOSTILE = """Say: <script>window.hacked = 1</script>

<img src="http://evil.example/a.png" onerror="window.hacked = 2"> ![see](http://evil.example/pixel.png)

[click](javascript:window.hacked=3) [go](data:text/html,<script>parent.hacked=4</script>) <a href="javascript:hacked=5">x</a>

<svg onload="window.hacked = 6"><animate onbegin="window.hacked = 7" attributeName=x dur=1s></svg>

<iframe srcdoc="<script>parent.hacked = 8</script>"></iframe> <style>body { display: none }</style> <form action="//evil.example"><button>b</button></form>

```html" onmouseover="window.hacked = 9
</code></pre><script>window.hacked = 10</script>
```"""


def test_the_numbers_of_a_long_list_stay_in_its_message(desk: Desk) -> None:
    page = desk.open("/")
    ask(page, "Say: " + "\n".join(f"{number}. one" for number in range(1, 101)))
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    room = page.locator(".u-answer .u-prose ol").evaluate(
        """list => {
            const pen = document.createElement("canvas").getContext("2d");
            pen.font = getComputedStyle(list).font;
            return parseFloat(getComputedStyle(list).paddingLeft) - pen.measureText("100. ").width;
        }"""
    )
    assert room > 0


def test_a_hostile_answer_is_inert(desk: Desk) -> None:
    page = desk.open("/")
    ask(page, HOSTILE)
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    prose = page.locator(".u-answer .u-prose")
    expect(prose).to_contain_text("<script>window.hacked = 10</script>")
    for visit in range(2):  # as it came, and as it was kept
        assert (
            prose.locator("script, img, svg, iframe, style, form, [onerror], [onload], [onmouseover]").count()
            == 0
        )
        targets = prose.locator("a[href]").evaluate_all(
            "links => links.map(link => link.getAttribute('href'))"
        )
        assert targets == ["http://evil.example/pixel.png"]
        for text in ("click", "go"):
            prose.get_by_text(text).first.click()
        prose.locator("pre").hover()
        assert page.evaluate("window.hacked") is None
        assert page.url.startswith(desk.base)
        if not visit:
            page.reload()
            page.wait_for_function("window.did_handshake === true")
    # The question is hostile too, and stands in the title, the list and the bubble.
    assert page.locator(".u-chat-head script, .u-conversations script, .u-bubble script").count() == 0
    page.get_by_role("button", name="More about this conversation").click()
    page.get_by_role("menuitem", name="Branches").click()
    page.locator(".u-tree").wait_for()
    assert page.evaluate("window.hacked") is None


def test_the_keyboard_is_enough(crawl_desk: Desk) -> None:
    page = crawl_desk.open("/")
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_be_focused()
    page.keyboard.type("Say: one two")
    page.keyboard.press("Shift+Enter")
    page.keyboard.insert_text(f"three {MANY}")
    expect(box).to_have_value(f"Say: one two\nthree {MANY}")
    page.keyboard.press("Enter")
    expect(page.locator(".u-answer")).to_contain_text("one two")
    page.keyboard.press("Escape")
    expect(page.locator(".u-ending")).to_contain_text("Stopped")
    for _ in range(30):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "Answer again":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop the answer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("2 / 2")).to_be_visible()
    page.locator("#content").focus()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search conversations")).to_be_focused()
    page.keyboard.type("nothing like this")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.keyboard.press("Control+A")
    page.keyboard.type("one two three one")
    found = page.get_by_role("link", name="Say: one two three one")
    expect(found).to_be_visible()
    page.keyboard.press("Tab")
    expect(found).to_be_focused()


def test_the_answer_is_spoken_once_and_not_word_by_word(page: Page) -> None:
    page.evaluate(
        """() => { window.spoken = []; const box = document.querySelector('.u-chat [role=status]');
        new MutationObserver(() => window.spoken.push(box.textContent)).observe(box, {childList: true, subtree: true, characterData: true}) }"""
    )
    ask(page, "Say: The willow blooms early and the bees know it.")
    expect(page.locator(".u-chat [role=status]")).to_have_text(
        "Shiv: The willow blooms early and the bees know it."
    )
    told = page.evaluate("window.spoken")
    assert [said for said in told if "willow" in said] == told[-1:]


def test_what_is_typed_while_a_question_is_sent_stays(desk: Desk) -> None:
    page = desk.open("/")
    page.evaluate(LATE)
    ask(page, "Say: First.")
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_have_value("")
    box.press_sequentially("and the next")
    # What the server has not taken yet would come back after a reload, too.
    assert page.evaluate("localStorage.getItem('uniun-draft:new')") == "and the next"
    sent = page.evaluate("Object.entries(localStorage).find(([key]) => key.startsWith('uniun-sent:'))[1]")
    assert json.loads(sent) == {"key": "new", "text": "Say: First.", "editing": None}
    page.evaluate("window.on()")
    expect(page.locator(".u-answer .u-prose")).to_have_text("First.")
    expect(box).to_have_value("and the next")
    address(page)
    page.reload()
    expect(box).to_have_value("and the next")


def test_what_could_not_be_sent_comes_back(crawl_desk: Desk) -> None:
    page = crawl_desk.open("/")
    ask(page, "Say: First.")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    other = crawl_desk.open(address(page))
    page.evaluate(LATE)
    ask(page, "Say: Mine.")
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_have_value("")
    box.press_sequentially("And more.")
    ask(other, LONG)
    expect(other.locator(".u-answer").last).to_contain_text("two")
    page.evaluate("window.on()")
    expect(box).to_have_value("Say: Mine.\nAnd more.")
    other.get_by_role("button", name="Stop the answer").click()
    expect(other.locator(".u-ending")).to_contain_text("Stopped")


def test_typing_has_the_conversation_read_ahead(slow_desk: Desk) -> None:
    page = slow_desk.open("/")
    trace = follow_trace(page)
    page.get_by_role("textbox", name="Message").press_sequentially("How")
    read = trace.wait("dispatch", kind="chat")
    assert read["tier"] == 1
    assert trace.wait("finish", job=read["job"])["tokens_done"] <= 1


def test_another_branch_can_be_looked_at_while_an_answer_comes(crawl_desk: Desk) -> None:
    page = crawl_desk.open("/")
    ask(page, "Say: First.")
    expect(page.locator(".u-answer .u-prose")).to_have_text("First.")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    ask(page, LONG)
    expect(page.locator(".u-answer").last).to_contain_text("two")
    page.get_by_role("article", name="Shiv").first.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".u-answer")).to_have_count(1)
    expect(page.locator(".u-waiting")).to_have_text("An answer is being written on another branch.")
    page.get_by_role("button", name="Stop the answer").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator(".u-answer .u-prose")).to_have_text("First.")
    page.get_by_role("button", name="More about this conversation").click()
    page.get_by_role("menuitem", name="Branches").click()
    page.locator(".u-node").last.click()
    expect(page.locator(".u-answer")).to_have_count(2)
    expect(page.locator(".u-answer .u-prose").last).to_contain_text("one two")
    expect(page.locator(".u-ending")).to_contain_text("Stopped")


def test_a_full_queue_is_told_and_the_question_is_kept(slow: Server, slow_desk: Desk) -> None:
    page = slow_desk.open("/")
    ask(page, "Say: First.")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    page.evaluate(CROWD, ["tiny", address(page).rpartition("/")[2], 3])
    ask(page, "Say: Second.")
    banner = page.locator(".u-ending.u-banner")
    expect(banner).to_contain_text("is full: 2 questions of this conversation wait")
    expect(page.get_by_text("Say: Second.").last).to_be_visible()
    expect(banner.get_by_role("link", name="See what waits")).to_have_attribute("href", "/scheduler")
    page.evaluate(GONE)
    banner.get_by_role("button", name="Try again").click()
    expect(page.locator(".u-answer .u-prose").last).to_have_text("Second.")
    expect(page.get_by_text("2 / 2")).to_be_visible()


def test_nothing_moves_when_an_answer_ends(slow_desk: Desk) -> None:
    """Slow, so that there is something that grows; looked at whenever it has, however seldom the browser paints."""
    page = slow_desk.open("/")
    page.evaluate(
        """() => {
          window.tops = () => [...document.querySelectorAll('.u-message')].map((each) => [each.offsetTop, each.offsetHeight]);
          new MutationObserver(() => {
            if (document.querySelector('.u-growing .u-prose')?.textContent) window.growing = window.tops();
          }).observe(document.querySelector('.u-thread'), {childList: true, subtree: true, characterData: true});
        }"""
    )
    ask(page, "Say: one two three four five six seven eight nine ten")
    answer = page.get_by_role("article", name="Shiv").last
    expect(answer.get_by_role("button", name="Answer again")).to_be_visible()
    assert len(page.evaluate("window.growing")) == 2
    assert page.evaluate("window.tops()") == page.evaluate("window.growing")


def test_while_an_answer_comes_enter_says_when_to_send_and_the_status_follows(crawl_desk: Desk) -> None:
    page = crawl_desk.open("/")
    ask(page, LONG)
    status = page.locator("[role=status].u-hidden")
    expect(status).to_have_text("Shiv is writing the answer")
    ask(page, "The next one")
    expect(page.get_by_role("alert")).to_contain_text("Send this when it has ended")
    page.get_by_role("button", name="Stop the answer").click()
    expect(status).to_contain_text("Shiv: ")
    expect(page.get_by_role("alert").filter(has_text="Send this")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Message")).to_have_value("The next one")
