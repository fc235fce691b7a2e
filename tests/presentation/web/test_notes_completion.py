"""[[ in the editor of a note completes the titles of others."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.presentation.web.conftest import PHONE, Desk, Server, Start
from tests.presentation.web.sample import fill


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=fill)


def new_note(desk: Desk) -> tuple[Page, Locator, Locator]:
    page = desk.open("/notes")
    page.get_by_role("button", name="New note").click()
    text = page.get_by_role("textbox", name="Text of the note")
    text.focus()
    return page, text, page.get_by_role("listbox", name="Notes to link to")


def test_a_title_is_chosen_by_keys(desk: Desk) -> None:
    page, text, titles = new_note(desk)
    text.press_sequentially("See [[")
    expect(titles.get_by_role("option")).to_have_count(6)
    text.press_sequentially("RE")
    expect(titles.get_by_role("option")).to_have_text(["Reading list"])
    text.press("Backspace")
    expect(titles.get_by_role("option")).to_have_text(["Rye bread", "Reading list"])
    first, second = (one.get_attribute("id") for one in titles.get_by_role("option").all())
    expect(text).to_have_attribute("aria-activedescendant", str(first))
    expect(page.get_by_role("status").filter(has_text="2 notes to link to")).to_be_attached()
    text.press("ArrowDown")
    expect(text).to_have_attribute("aria-activedescendant", str(second))
    text.press("ArrowDown")
    expect(text).to_have_attribute("aria-activedescendant", str(first))
    text.press("ArrowUp")
    expect(titles.get_by_role("option", selected=True)).to_have_text("Reading list")
    text.press("Enter")
    expect(text).to_have_value("See [[Reading list]]")
    expect(titles).to_have_count(0)
    expect(text).not_to_have_attribute("aria-activedescendant", str(first))
    expect(page.locator("[data-state]")).to_have_text("Saved")
    page.keyboard.press("Control+z")
    expect(text).to_have_value("See [[R")


def test_escape_and_what_is_no_beginning_leave_the_keys_to_the_text(desk: Desk) -> None:
    _, text, titles = new_note(desk)
    text.press_sequentially("[[W")
    expect(titles.get_by_role("option")).to_have_text(["Willow"])
    text.press("Escape")
    expect(titles).to_have_count(0)
    text.press("Enter")
    expect(text).to_have_value("[[W\n")
    text.press_sequentially("[[Wi")
    expect(titles).to_be_visible()
    text.press_sequentially("zz")
    expect(titles).to_have_count(0)
    text.press_sequentially("]] done")
    text.press("Enter")
    expect(text).to_have_value("[[W\n[[Wizz]] done\n")


def test_a_click_chooses_and_what_closes_the_link_is_not_written_twice(desk: Desk) -> None:
    _, text, titles = new_note(desk)
    text.fill("From ]] on")
    text.evaluate("(area) => area.setSelectionRange(5, 5)")
    text.press_sequentially("[[be")
    titles.get_by_role("option", name="Bees in March").click()
    expect(text).to_have_value("From [[Bees in March]] on")
    expect(text).to_be_focused()


@pytest.mark.parametrize("size", [(900, 500), (390, 400)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("lines", [1, 5])
def test_the_list_stays_in_sight_in_a_window_that_becomes_small(
    desk: Desk, size: tuple[int, int], lines: int
) -> None:
    page, text, titles = new_note(desk)
    text.fill("a line\n" * lines)
    text.press("Control+End")
    text.press_sequentially("[[")
    expect(titles).to_be_visible()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    expect(titles).to_be_in_viewport(ratio=1)
    text.press("ArrowUp")
    expect(titles.get_by_role("option", selected=True)).to_be_in_viewport(ratio=0.9)
    expect(titles.get_by_role("option").last).to_have_attribute("aria-selected", "true")


def test_the_list_goes_when_a_smaller_window_hides_the_cursor(desk: Desk) -> None:
    page, text, titles = new_note(desk)
    text.fill("a line\n" * 18)
    text.press("Control+End")
    text.press_sequentially("[[")
    expect(titles).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 400})
    expect(titles).to_have_count(0)


def test_the_list_stays_in_sight_on_a_phone(desk: Desk) -> None:
    page, text, titles = new_note(desk)
    page.set_viewport_size(PHONE)
    text.fill("word " * 30 + "[[")
    expect(titles).to_be_in_viewport(ratio=1)
