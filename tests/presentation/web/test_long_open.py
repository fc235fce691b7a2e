"""Pages that stay open for long, and pages that are closed: what a server must not gather."""

import re
import signal

import pytest
from playwright.sync_api import Page, expect

from presentation.web.chat_thread import SHOWN
from tests.presentation.web.conftest import Desk, Server, Start

QUESTIONS = 20
TABS = 6


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(tokens_per_s=2000)


def alive(server: Server, page: Page) -> tuple[int, int]:
    """Pages that the server holds, and the elements of the largest."""
    assert server.process is not None
    told = server.log.count("pages ")
    server.process.send_signal(signal.SIGUSR1)
    for _ in range(200):
        found = re.findall(r"^pages (\d+) elements (\d+)$", server.log, re.MULTILINE)
        if len(found) > told:
            return int(found[-1][0]), int(found[-1][1])
        page.wait_for_timeout(50)
    raise AssertionError("the server does not tell")


def test_a_long_conversation_keeps_the_page_small(server: Server, desk: Desk) -> None:
    page = desk.open("/")
    box = page.get_by_role("textbox", name="Message")
    sizes = []
    for number in range(QUESTIONS):
        box.fill(f"Say: answer {number}.")
        box.press("Enter")
        expect(page.locator(".u-answer .u-prose").last).to_have_text(f"answer {number}.")
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        if number >= SHOWN // 2 - 1:
            sizes.append(alive(server, page)[1])
    expect(page.locator(".u-message")).to_have_count(SHOWN)
    assert max(sizes) - min(sizes) <= 10, sizes


def test_a_closed_page_is_forgotten(server: Server, desk: Desk) -> None:
    page = desk.open("/settings")
    before, _ = alive(server, page)
    for path in ("/", "/deck", "/scheduler", "/notes", "/ganas", "/models")[:TABS]:
        desk.open(path).close()
    for _ in range(300):
        now, _ = alive(server, page)
        if now <= before:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{now} pages are alive, {before} were before")


def test_a_note_that_was_only_begun_leaves_nothing(server: Server, desk: Desk) -> None:
    page = desk.open("/notes")
    alive(server, page)
    page.get_by_role("button", name="New note").click()
    page.wait_for_url(re.compile(r"/notes/[0-9a-f]+"))
    page.get_by_label("Title").wait_for()
    page.goto("/notes")
    # The page that was left is given up.
    expect(page.get_by_role("heading", name="No notes yet")).to_be_visible()
