"""The first minutes, in a browser: a model that comes, and three ways to begin."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.presentation.web.conftest import Desk, Server
from tests.presentation.web.fetching import fail, fetching_server, go


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with fetching_server(tmp_path_factory.mktemp("data")) as server:
        yield server


def model_card(page: Page) -> object:
    return page.get_by_role("region", name="The model")


def test_the_first_minutes(server: Server, desk: Desk, tmp_path: Path) -> None:
    """One story, because each step leaves the next one less new."""
    page = desk.open("/")
    expect(page.get_by_text("private assistant over your own notes")).to_be_visible()
    expect(page.get_by_text("Answers come from your notes")).to_have_count(0)  # which says the same
    page.wait_for_function(
        """() => {
            const tops = [...document.querySelectorAll('.u-way')].map((way) => way.getBoundingClientRect().y);
            return tops.length === 3 && new Set(tops).size === 1;
        }"""
    )
    card = page.get_by_role("region", name="The model")
    expect(card).to_contain_text("Fetching: 30 MB of 100 MB")
    expect(card).to_contain_text("From: a wheel. Licence: Apache-2.0.")
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()

    # It fails, says why, and goes on when asked.
    fail(server, "tiny")
    expect(card.get_by_role("alert")).to_contain_text("Tiny is not here yet. tiny could not be fetched")
    expect(card.get_by_role("alert")).to_contain_text("cannot be reached")
    card.get_by_role("button", name="Try again").focus()
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Fetching: 30 MB of 100 MB")

    # Larger ones that fit, where the hub answers; the huge one does not fit.
    larger = page.get_by_role("region", name="Larger models")
    expect(larger.get_by_role("button", name="Fetch Other")).to_be_visible()
    expect(larger.get_by_text("Huge")).to_have_count(0)

    # A folder that is none; then one that is, while the model is still being fetched.
    folder = page.get_by_label("Folder on this machine")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("Write where the folder is.")).to_be_visible()
    folder.fill(str(tmp_path / "nowhere"))
    folder.press("Enter")
    expect(page.locator(".u-banner.u-bad")).to_contain_text("nowhere")
    folder.fill("")
    folder.press("Enter")
    expect(page.get_by_text("Write where the folder is.")).to_be_visible()
    expect(page.locator(".u-banner.u-bad")).to_have_count(0)
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "Bees.md").write_text("Bees fly at 12 degrees.")
    (tmp_path / "vault" / "Wasps.md").write_bytes(b"Wasps\xff\x00\x01\xfe")
    folder.fill(str(tmp_path / "vault"))
    folder.press("Enter")
    expect(page.get_by_text("note is here now.").or_(page.get_by_text("notes are here now."))).to_be_visible()
    odd = page.get_by_role("list", name="Odd files").get_by_role("listitem")
    expect(odd).to_have_text(re.compile(r"Wasps\.md \S+"))  # which, and why
    expect(page.get_by_role("link", name="See the notes")).to_have_attribute("href", "/notes")

    # Another tab sees the same download; a reload does not begin it anew.
    other = desk.open("/welcome")
    expect(other.get_by_role("region", name="The model")).to_contain_text("Fetching: 30 MB of 100 MB")
    go(server, "tiny")
    expect(other.get_by_role("region", name="The model")).to_contain_text("Tiny is here.")
    expect(card).to_contain_text("Tiny is here.")

    # There are notes: the chat opens.
    page.reload()
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    expect(page.get_by_text("private assistant over your own notes")).to_have_count(0)


def test_the_sample_notes_are_loaded_by_keyboard(desk: Desk) -> None:
    page = desk.open("/welcome")
    page.get_by_role("button", name="Load them").focus()
    page.keyboard.press("Enter")
    told = page.get_by_text("40 notes are here now.")
    expect(told).to_be_visible()
    expect(told).to_be_in_viewport()
    page.get_by_role("button", name="Ask something").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/")
