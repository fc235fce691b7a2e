"""New notes in a browser: what is typed is found again, and what is left empty leaves nothing behind."""

import json
import re

from playwright.sync_api import Locator, Page, expect

from tests.presentation.web.conftest import Desk, Server

DEAF = """() => {
  const emit = window.socket.emit.bind(window.socket);
  window.socket.emit = () => {};
  window.hear = () => { window.socket.emit = emit; };
}"""
"""Nothing that the page says is heard, until `hear` is called."""


def begin(page: Page) -> str:
    """The id of a new note."""
    page.get_by_role("button", name="New note").click()
    page.wait_for_url(re.compile(r"/notes/[0-9a-f]{32}\?begin=1$"))
    expect(state(page)).to_have_text("Not kept yet")
    return page.url.rpartition("/")[2].partition("?")[0]


def state(page: Page) -> Locator:
    return page.locator("[data-state]")


def text(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Text of the note")


def test_a_new_note_that_was_typed_while_the_server_was_away_is_found_again(
    desk: Desk, server: Server
) -> None:
    page = desk.open("/notes")
    note = begin(page)
    server.stop()
    text(page).fill("Typed while\nnobody listened")
    expect(state(page)).to_contain_text("Not saved: the connection is lost")
    page.close()
    server.start()
    desk.complaints.clear()  # the browser writes each vain attempt to connect to its console
    other = desk.open("/notes")
    for path in (f"/notes/{note}", "/notes"):
        other.goto(server.url + path)
        offer = other.get_by_role("list", name="Texts that were not saved")
        expect(offer).to_have_text(re.compile("A text that was not saved: “Typed while nobody listened”"))
    listed = desk.open("/notes")
    offer.get_by_role("link", name="Open").click()
    expect(text(other)).to_have_value("Typed while\nnobody listened")
    expect(state(other)).to_have_text("Saved")
    expect(other).to_have_url(f"{server.url}/notes/{note}")
    expect(listed.get_by_role("list", name="Texts that were not saved")).to_be_hidden()
    expect(listed.get_by_role("link", name="Typed while")).to_be_visible()


def test_a_first_paste_that_is_too_long_is_found_again_and_says_what_can_be_done(desk: Desk) -> None:
    page = desk.open("/notes")
    begin(page)
    text(page).fill("long " * 50_001)
    expect(state(page)).to_contain_text("put the text into a .md file and import that")
    page.get_by_role("link", name="All notes").click()
    offer = page.get_by_role("list", name="Texts that were not saved")
    expect(offer).to_contain_text("long long")
    offer.get_by_role("link", name="Open").click()
    expect(state(page)).to_contain_text("Split it")
    page.get_by_role("link", name="All notes").click()
    offer.get_by_role("button", name="Discard").click()
    expect(offer).to_contain_text("Discarded: “long long")
    expect(offer.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(offer).to_contain_text("A text that was not saved: “long long")
    offer.get_by_role("button", name="Discard").click()
    expect(offer.get_by_role("button", name="Undo")).to_be_visible()
    page.reload()
    page.wait_for_function("window.did_handshake === true")
    expect(offer).to_be_hidden()
    assert (
        page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('uniun/draft')).length") == 0
    )


def test_the_text_of_a_tab_that_lost_outlasts_the_save_of_the_other(desk: Desk) -> None:
    """Both have the note open, and keep what is typed under its name."""
    first = desk.open("/notes")
    note = begin(first)
    text(first).fill("The beginning.")
    expect(state(first)).to_have_text("Saved")
    second = desk.open(f"/notes/{note}")
    first.evaluate(DEAF)
    text(first).fill("First, which comes too late.")
    text(second).fill("Second.")
    expect(state(second)).to_have_text("Saved")
    first.evaluate("window.hear()")
    expect(state(first)).to_contain_text("changed elsewhere")
    for typed in ("Second again.", "And again."):
        text(second).fill(typed)
        expect(state(second)).to_have_text("Saved")
    first.reload()
    expect(text(first)).to_have_value("First, which comes too late.")
    expect(state(first)).to_contain_text("changed elsewhere")


def test_a_text_that_was_saved_after_its_page_was_left_is_not_kept(desk: Desk) -> None:
    page = desk.open("/notes")
    note = begin(page)
    text(page).fill("Saved behind my back.")
    expect(state(page)).to_have_text("Saved")
    page.goto("/notes")
    kept = {"title": "", "text": "Saved behind my back.", "seen": "whatever"}
    page.evaluate(
        "([key, kept]) => localStorage.setItem(key, kept)", [f"uniun/draft/{note}", json.dumps(kept)]
    )
    lost = [f"{number:032x}" for number in range(60)]
    for each in lost:
        page.evaluate(
            "([key, kept]) => localStorage.setItem(key, kept)",
            [f"uniun/draft/{each}", json.dumps({**kept, "text": f"Lost {each}"})],
        )
    page.goto("/notes")
    offer = page.get_by_role("list", name="Texts that were not saved")
    expect(offer.get_by_role("listitem")).to_have_count(20)
    page.wait_for_function(f"localStorage.getItem('uniun/draft/{note}') === null")
    assert page.evaluate("localStorage.length") >= len(lost)


def test_half_a_character_does_not_keep_a_note_from_being_saved(desk: Desk) -> None:
    page = desk.open("/notes")
    begin(page)
    text(page).evaluate(
        "(area) => { area.value = 'cut: \\ud83d.'; area.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(state(page)).to_have_text("Saved")
    expect(text(page)).to_have_value("cut: \ufffd.")


def test_a_second_note_of_a_title_is_told_of_the_first(desk: Desk) -> None:
    page = desk.open("/notes")
    for number in ("first", "second"):
        page.goto("/notes")
        begin(page)
        page.get_by_label("Title").fill("Twice")
        text(page).fill(number)
        expect(state(page)).to_have_text("Saved")
        expect(page.get_by_text("has this title")).to_have_count(int(number == "second"))
    page.get_by_label("Title").fill("Once")
    expect(page.get_by_text("has this title")).to_be_hidden()
    page.get_by_label("Title").fill("twice")
    page.get_by_role("link", name="Another note").click()
    expect(text(page)).to_have_value("first")


def test_a_new_note_in_which_nothing_stands_goes_without_a_question(desk: Desk) -> None:
    page = desk.open("/notes")
    begin(page)
    page.get_by_role("button", name="Delete this note").click()
    expect(page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("/notes$"))


def test_a_note_from_which_every_letter_was_deleted_goes_when_it_is_left(desk: Desk, server: Server) -> None:
    listed, page = desk.open("/notes"), desk.open("/notes")
    note = begin(page)
    text(page).fill("Short thought")
    expect(listed.get_by_role("link", name="Short thought")).to_be_visible()
    text(page).fill("")
    expect(page).to_have_url(re.compile(r"\?begin=1$"))
    expect(listed.get_by_role("link", name="Untitled")).to_be_visible()
    page.reload()
    expect(listed.get_by_role("link", name="Untitled")).to_be_hidden()
    text(page).fill("Another thought")
    expect(listed.get_by_role("link", name="Another thought")).to_be_visible()
    expect(page).to_have_url(f"{server.url}/notes/{note}")
    text(page).fill("")
    expect(listed.get_by_role("link", name="Untitled")).to_be_visible()
    page.get_by_role("link", name="All notes").click()
    expect(listed.get_by_role("link", name="Untitled")).to_be_hidden()


def test_a_note_that_was_emptied_later_says_what_becomes_of_it_and_goes_without_a_question(
    desk: Desk,
) -> None:
    page = desk.open("/notes")
    begin(page)
    text(page).fill("A passing thought")
    expect(state(page)).to_have_text("Saved")
    page.reload()
    page.wait_for_function("window.did_handshake === true")
    emptied = page.get_by_text("Nothing stands in this note any more.")
    expect(text(page)).to_have_value("A passing thought")
    expect(emptied).to_be_hidden()
    text(page).fill("")
    expect(emptied).to_be_visible()
    text(page).fill("Another")
    expect(emptied).to_be_hidden()
    text(page).fill("")
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Untitled")).to_have_count(0)
