"""One note in a browser: nothing that is typed is lost, nothing of others overwritten, nothing that it says does anything."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Page, expect

from data.settings import Settings
from domain.entities.knowledge import ConceptClaim, Extraction
from tests.presentation.web.conftest import Desk, Server, Start
from tests.presentation.web.sample import fill
from uniun import build_container

HOSTILE = """# <script>window.hit = 1</script>

<img src="https://evil.example/a.png" onerror="window.hit = 1"> <svg onload="window.hit = 1"></svg>
![tracker](https://evil.example/b.png) ![inline](data:image/svg+xml,<svg onload=alert(1)>)
[click](javascript:window.hit=1) [also](data:text/html,<script>window.hit=1</script>)
<iframe src="https://evil.example"></iframe> <style>body { display: none }</style>
<a href="#" onclick="window.hit = 1">x</a> [[x" onmouseover="window.hit=1]]
"""


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=fill)


def aside(server: Server, work: Callable[[DeclarativeContainer], Coroutine[Any, Any, Any]]) -> Any:
    """As another program would, beside the running server."""

    async def run() -> Any:
        container = build_container(Settings(data_dir=server.data_dir, log_dir=server.data_dir / "log"))
        try:
            return await work(container)
        finally:
            await container.database().aclose()

    # The browser's own loop runs in this thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, run()).result()


def make(server: Server, text: str, title: str = "") -> str:
    note = aside(server, lambda container: container.notes_controller().add(text, title=title))
    return str(note.id)


def text_of(server: Server, note_id: str) -> str:
    details = aside(server, lambda container: container.notes_controller().show(note_id))
    return str(details.note.text)


def change(server: Server, note_id: str, text: str) -> None:
    aside(server, lambda container: container.notes_controller().change(note_id, text=text))


def field(page: Page) -> Any:
    return page.get_by_role("textbox", name="Text of the note")


def saved(page: Page) -> None:
    expect(page.locator("[data-state]")).to_have_text("Saved")


def test_what_is_known_of_a_note_is_sent_with_it(server: Server) -> None:
    note = make(server, "It is sent whole.")
    assert "Written here. Begun" in httpx.get(f"{server.url}/notes/{note}").text


def test_what_is_typed_is_saved_by_itself(desk: Desk, server: Server) -> None:
    page = desk.open("/notes")
    page.get_by_role("button", name="New note").click()
    field(page).press_sequentially("A thought\nand 😀 more")
    saved(page)
    expect(page.get_by_label("Title")).to_have_value("A thought")
    expect(page).to_have_title("A thought · UNIUN")
    page.get_by_label("Title").fill("My title")
    saved(page)
    field(page).press("End")
    field(page).press_sequentially("!")
    saved(page)
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("My title")
    expect(field(page)).to_have_value("A thought\nand 😀 more!")
    assert text_of(server, page.url.rpartition("/")[2]) == "A thought\nand 😀 more!"


def test_a_reload_before_the_save_loses_nothing(desk: Desk, server: Server) -> None:
    note = make(server, "old")
    page = desk.open(f"/notes/{note}")
    # As if the browser had died at once.
    page.evaluate("window.socket.disconnect()")
    field(page).fill("typed, and not sent")
    page.evaluate("location.reload()")
    expect(page.get_by_text("had not been saved was still in this browser")).to_be_visible()
    expect(field(page)).to_have_value("typed, and not sent")
    saved(page)
    assert text_of(server, note) == "typed, and not sent"
    assert (
        page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('uniun/draft')).length") == 0
    )


def test_the_server_may_go_away_while_one_types(desk: Desk, server: Server) -> None:
    note = make(server, "old")
    page = desk.open(f"/notes/{note}")
    server.stop()
    field(page).fill("typed while nobody listened")
    expect(page.locator("[data-state]")).to_contain_text("Not saved: the connection is lost")
    server.start()
    saved(page)
    expect(field(page)).to_have_value("typed while nobody listened")
    assert text_of(server, note) == "typed while nobody listened"
    desk.complaints.clear()  # the browser writes each vain attempt to connect to its console


def test_a_change_from_elsewhere_is_not_overwritten(desk: Desk, server: Server) -> None:
    note = make(server, "first", title="Fought over")
    page = desk.open("/notes")
    for choice, kept in (("Take the other", "theirs 0"), ("Keep mine", "mine 1"), ("Keep both", "theirs 2")):
        number = ("Take the other", "Keep mine", "Keep both").index(choice)
        page.goto(f"/notes/{note}")  # a look at the note that a choice begins may be under way still
        change(server, note, f"theirs {number}")
        field(page).fill(f"mine {number}")
        banner = page.get_by_role("alert").filter(has_text="changed elsewhere while you were writing")
        expect(banner).to_be_visible()
        assert text_of(server, note) == f"theirs {number}"
        banner.get_by_text("Show the other version").click()
        expect(page.get_by_label("The other version")).to_contain_text(f"theirs {number}")
        banner.get_by_role("button", name=choice).click()
        expect(banner).to_be_hidden()
        saved(page)
        expect(field(page)).to_have_value(kept)
        assert text_of(server, note) == kept
    page.goto("/notes")
    page.get_by_role("link", name="Fought over (my version)").click()
    expect(field(page)).to_have_value("mine 2")


def test_a_draft_of_what_the_note_is_no_longer_is_offered(desk: Desk, server: Server) -> None:
    note = make(server, "old")
    page = desk.open(f"/notes/{note}")
    page.evaluate("window.socket.disconnect()")
    field(page).fill("my draft")
    change(server, note, "changed meanwhile")
    page.evaluate("location.reload()")
    expect(page.get_by_text("This browser still had text of yours")).to_be_visible()
    assert text_of(server, note) == "changed meanwhile"
    page.get_by_role("button", name="Keep mine").click()
    saved(page)
    assert text_of(server, note) == "my draft"


def test_two_tabs_show_the_same(desk: Desk, server: Server) -> None:
    note = make(server, "old")
    one, two = desk.open(f"/notes/{note}"), desk.open(f"/notes/{note}")
    field(one).fill("new in one")
    expect(field(two)).to_have_value("new in one")
    field(two).fill("and in two")
    expect(field(one)).to_have_value("and in two")
    saved(one)
    saved(two)


def test_what_is_typed_while_another_text_is_on_its_way_is_not_lost(desk: Desk, server: Server) -> None:
    note = make(server, "old")
    page = desk.open(f"/notes/{note}")
    change(server, note, "theirs")
    # The user comes back to the page, which has the note looked at, and types at once.
    page.evaluate(
        """() => {
            window.dispatchEvent(new Event('focus'));
            const area = document.querySelector('.u-note-text');
            area.value = 'mine';
            area.dispatchEvent(new Event('input'));
        }"""
    )
    expect(page.get_by_role("button", name="Keep mine")).to_be_visible()
    expect(field(page)).to_have_value("mine")
    assert text_of(server, note) == "theirs"
    page.get_by_role("button", name="Keep mine").click()
    saved(page)
    assert text_of(server, note) == "mine"


def test_a_note_that_is_too_long_is_shown_and_not_cut(desk: Desk, server: Server) -> None:
    note = make(server, "word " * 60_000, title="Long")
    page = desk.open(f"/notes/{note}")
    expect(page.locator("[data-state]")).to_contain_text("Read only")
    expect(field(page)).to_have_attribute("readonly", "")
    short = make(server, "short")
    page.goto(f"/notes/{short}")
    field(page).fill("x" * 250_001)
    expect(page.get_by_role("alert").first).to_contain_text("Split it")
    assert len(text_of(server, note)) == 300_000


def test_the_preview_shows_what_stands_there_and_does_nothing(desk: Desk, server: Server) -> None:
    note = make(server, HOSTILE, title="Hostile")
    page = desk.open(f"/notes/{note}")
    page.get_by_role("button", name="Side by side").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_role("heading", level=1)).to_have_text("<script>window.hit = 1</script>")
    expect(preview).to_contain_text("tracker (picture)")
    assert preview.locator("img, svg, iframe, style, script, [onclick], [onmouseover]").count() == 0
    targets = preview.locator("a[href]").evaluate_all("(links) => links.map((a) => a.getAttribute('href'))")
    assert all(target.startswith(("/notes/find?name=", "https://evil.example/b.png")) for target in targets)
    for anchor in preview.locator("a:not([href])").all():
        anchor.click()
    assert page.evaluate("window.hit") is None
    field(page).fill("Now **bold**, see [[Sourdough]]")
    expect(preview.locator("strong")).to_have_text("bold")
    preview.get_by_role("link", name="Sourdough").click()
    expect(page.get_by_label("Title")).to_have_value("Sourdough")


def test_tags_links_and_manases_beside_the_note(desk: Desk, server: Server) -> None:
    note = make(server, "See [[Rye bread]] and [[Unwritten]]. #inside [Plan](plans/oven.pdf)", title="Linked")
    page = desk.open(f"/notes/{note}")
    about = page.get_by_role("complementary", name="About this note")
    expect(about).to_contain_text("in the text")
    expect(about.get_by_role("listitem").filter(has_text="plans/oven.pdf")).to_contain_text("not kept")
    add = about.get_by_role("textbox", name="Add a tag")
    add.fill("Outside Tag")
    add.press("Enter")
    expect(about.get_by_role("link", name="#outside-tag")).to_be_visible()
    field(page).press("End")
    field(page).press_sequentially(" More.")
    saved(page)
    about.get_by_role("button", name="Remove the tag outside-tag").click()
    expect(about.get_by_role("link", name="#outside-tag")).to_be_hidden()
    expect(about.get_by_text("not written yet")).to_be_visible()
    about.get_by_role("checkbox", name="Garden").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Put into Garden.")).to_be_visible()
    expect(about.get_by_role("checkbox", name="Garden")).to_be_focused()  # although it was drawn anew
    page.reload()
    expect(about.get_by_role("checkbox", name="Garden")).to_be_checked()
    about.get_by_role("link", name="Rye bread").click()
    expect(page.get_by_label("Title")).to_have_value("Rye bread")
    expect(about.get_by_role("link", name="Linked", exact=True)).to_be_visible()


def test_what_stands_beside_a_note_is_not_drawn_anew_for_nothing(desk: Desk, server: Server) -> None:
    note = make(server, "See [[Rye bread]] and [[Unwritten]]. #inside", title="Quiet")
    page = desk.open(f"/notes/{note}")
    about = page.get_by_role("complementary", name="About this note")
    expect(about.get_by_role("checkbox", name="Garden")).to_be_visible()
    rows = about.locator("section li")
    rows.evaluate_all("(rows) => rows.forEach((row) => { row.dataset.kept = 'yes' })")
    field(page).press("End")
    field(page).press_sequentially(" More.")
    saved(page)
    add = about.get_by_role("textbox", name="Add a tag")
    add.fill("later")
    add.press("Enter")
    expect(about.get_by_role("link", name="#later")).to_be_visible()
    tags = about.locator("section").filter(has=page.get_by_role("heading", name="Tags"))
    fresh = about.locator("section li:not([data-kept])")
    assert fresh.count() == tags.locator("li:not([data-kept])").count() > 0


def test_an_open_note_is_looked_at_and_its_reading_is_told(desk: Desk, server: Server) -> None:
    note = make(server, "The mill stands by the river.")
    page = desk.open(f"/notes/{note}")
    page.wait_for_function(
        "note => fetch('/scheduler').then((answer) => answer.json())"
        ".then((seen) => seen.foreground?.[0] === 'extract' && seen.foreground[1] === note)",
        arg=note,
    )
    # The engine of these tests writes no JSON: after three attempts the note is given up.
    expect(page.get_by_text("Could not be read:")).to_be_visible()
    page.evaluate(
        """() => { window.told = []; const line = document.querySelector('.u-reading');
        new MutationObserver(() => window.told.push(line.textContent)).observe(line, {childList: true, subtree: true, characterData: true}) }"""
    )
    page.get_by_role("button", name="Try again").click()
    page.wait_for_function("window.told.some((said) => /Waiting to be read|Being read now/.test(said))")
    expect(page.get_by_text("Could not be read:")).to_be_visible()
    page.get_by_role("button", name="Chat", exact=True).click()
    page.wait_for_function(
        "fetch('/scheduler').then((answer) => answer.json()).then((seen) => seen.foreground?.[0] === 'chat')"
    )


def test_what_was_read_in_an_open_note_appears_beside_it(desk: Desk, server: Server) -> None:
    note = make(server, "The weir holds the water back.")
    page = desk.open(f"/notes/{note}")
    expect(page.locator(".u-reading")).to_contain_text(re.compile("read", re.IGNORECASE))
    seen = Extraction(summary="A weir.", concepts=(ConceptClaim(name="weir"),))

    async def read(container: DeclarativeContainer) -> None:
        knowledge = container.knowledge_repository()
        details = await container.notes_controller().show(note)
        await knowledge.assert_extraction(note, details.note.content_hash, seen)

    aside(server, read)
    expect(page.get_by_text("Read into the graph")).to_be_visible()
    expect(page.locator(".u-note-side").get_by_text("weir", exact=True)).to_be_visible()


def test_the_chat_beside_it_knows_the_draft_and_writes_into_it(desk: Desk, server: Server) -> None:
    note = make(server, "Say it plainly. 😀 REPLACE ME please.")
    page = desk.open(f"/notes/{note}")
    page.get_by_role("button", name="Chat", exact=True).click()
    box = page.get_by_role("textbox", name="Ask about this note")
    box.fill("Say: Words of the model")
    box.press("Enter")
    expect(page.get_by_role("button", name="Insert into note")).to_be_visible()
    page.get_by_role("button", name="Replace selection").click()
    expect(page.get_by_text("Select the words in the note")).to_be_visible()
    field(page).evaluate(
        "(area) => { const at = area.value.indexOf('REPLACE'); area.setSelectionRange(at, at + 10); }"
    )
    page.get_by_role("button", name="Replace selection").click()
    expect(field(page)).to_have_value(
        re.compile(r"^Say it plainly\. 😀 Words of the model.* please\.$", re.DOTALL)
    )
    saved(page)
    field(page).press("Control+z")
    expect(field(page)).to_have_value("Say it plainly. 😀 REPLACE ME please.")
    field(page).press("Control+End")
    page.get_by_role("button", name="Insert into note").click()
    expect(field(page)).to_have_value(re.compile(r"please\.\n\nWords of the model"))
    saved(page)
    assert "Words of the model" in text_of(server, note)
    field(page).evaluate("(area) => area.setSelectionRange(4, 4)")
    page.get_by_role("button", name="Insert into note").click()
    expect(field(page)).to_have_value(re.compile(r"^Say Words of the model.*it plainly", re.DOTALL))
    saved(page)
    page.reload()
    expect(page.get_by_role("log", name="Messages")).to_contain_text("Words of the model")
    page.get_by_role("button", name="Insert into note").click()  # nobody has put the cursor anywhere
    expect(field(page)).to_have_value(re.compile(r"\n\nWords of the model[^\n]*\n$"))


def test_a_note_can_be_written_with_the_keyboard_alone(desk: Desk) -> None:
    page = desk.open("/notes?tag=garden")
    page.get_by_role("searchbox", name="Search notes").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("u-note-link"):
            break
    page.keyboard.press("Enter")
    page.get_by_label("Title").wait_for()
    page.get_by_label("Title").focus()
    page.keyboard.press("Enter")
    expect(field(page)).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" Typed.")
    saved(page)
    page.get_by_role("button", name="Delete this note").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(field(page)).to_have_value(re.compile(r"Typed\.$"))
