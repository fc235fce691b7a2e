"""A note that no browser should edit: the page says why, and there is a way to change it all the same."""

from pathlib import Path

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Page, expect

from presentation.web.notes_field import LONGEST_TEXT
from tests.presentation.web.conftest import Desk, Server, Start


async def one_long_note(container: DeclarativeContainer) -> None:
    await container.notes_controller().add("word " * 60_000, title="Long: a log", tags=["logs"])


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
    file.write_text(whole[: whole.index("word")] + "Cut down to what matters.\n")
    put(page, file)
    expect(page.get_by_role("textbox", name="Text of the note")).to_have_value("Cut down to what matters.\n")
    assert page.url == address
    expect(why).to_have_count(0)
    expect(page.get_by_role("link", name="#logs")).to_be_visible()
