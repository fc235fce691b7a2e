"""A note that no browser should edit: the page says why, and there is a way to change it all the same."""

import re
from pathlib import Path

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Page, expect

from presentation.web.notes_field import LONGEST_TEXT
from tests.presentation.web.conftest import Desk, Server, Start


async def one_long_note(container: DeclarativeContainer) -> None:
    await container.notes_controller().add("word " * 60_000, title="Long: a log", tags=["logs"])
    await container.notes_controller().add("words" * 50_001, title="Another log")


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=one_long_note)


def open_note(desk: Desk) -> Page:
    return desk.open("/notes/find?name=Long:%20a%20log")


def put(page: Page, file: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Put the edited file in its place").click()
    chooser.value.set_files(file)


def test_it_goes_out_as_a_file_and_comes_back_edited(desk: Desk, tmp_path: Path) -> None:
    page = open_note(desk)
    why = page.get_by_role("region", name="This note is too long to be edited here")
    expect(why).to_contain_text(
        f"This note has 300,000 characters. A browser stays quick up to {LONGEST_TEXT:,}"
    )
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the Markdown").click()
    assert download.value.suggested_filename == "Long a log.md"
    file = tmp_path / "log.md"
    download.value.save_as(file)
    whole = file.read_text()
    assert whole.startswith("---\n")
    assert "Long: a log" in whole
    assert whole.count("word") == 60_000
    odd = tmp_path / "odd.md"
    odd.write_bytes(b"\xff\xfe")
    put(page, odd)
    expect(page.get_by_text("it is no text in UTF-8")).to_be_visible()
    address = page.url
    file.write_text("  \n")
    put(page, file)
    expect(page.get_by_text("The note was not changed: the file is empty")).to_be_visible()
    file.write_text(whole[: whole.index("word")] + "Cut down to what matters.\n")
    put(page, file)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(
        "The note “Long: a log” with 300,000 characters becomes “Long: a log” with 26 characters."
    )
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    put(page, file)
    page.get_by_role("dialog").get_by_role("button", name="Replace the note").click()
    expect(page.get_by_role("textbox", name="Text of the note")).to_have_value("Cut down to what matters.\n")
    assert page.url == address
    expect(why).to_have_count(0)
    expect(page.get_by_role("link", name="#logs")).to_be_visible()


def test_what_took_its_place_can_be_undone(desk: Desk, tmp_path: Path) -> None:
    page = desk.open("/notes/find?name=Another%20log")
    page.wait_for_url(re.compile(r"/notes/(?!find)"))
    address = page.url
    file = tmp_path / "other.md"
    file.write_text("---\ntitle: Untitled\n---\n")
    put(page, file)
    page.get_by_role("dialog").get_by_role("button", name="Replace the note").click()
    done = page.get_by_role("status").filter(has_text="The file has taken the note's place")
    expect(done).to_contain_text("“Another log” with 250,005 characters")
    page.goto("/notes")
    page.goto(address)  # left and found again: a note that had a text is not deleted for being empty
    done.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("This note has 250,005 characters")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value("Another log")
    expect(done).to_have_count(0)
