"""The frame around every page."""

import httpx
from playwright.sync_api import expect

from tests.presentation.web.conftest import PHONE, Desk, Server


def test_a_page_has_its_landmarks_and_a_skip_link(desk: Desk) -> None:
    page = desk.open("/models")  # the chat's composer takes the focus
    expect(page).to_have_title("Models · UNIUN")
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    navigation = page.get_by_role("navigation", name="Main")
    expect(navigation.get_by_role("link", name="Models", exact=True)).to_have_attribute(
        "aria-current", "page"
    )
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


def test_an_address_without_a_page_shows_the_way_back(server: Server, desk: Desk) -> None:
    page = desk.open("/")
    answer = page.goto("/nowhere")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    page.get_by_role("link", name="Notes", exact=True).click()
    page.wait_for_url("**/notes")
    assert httpx.get(f"{server.url}/v1/nowhere").json()["error"]["type"] == "not_found_error"
    desk.complaints.clear()  # the browser writes the 404 to its console


def test_the_navigation_is_at_the_bottom_of_a_phone(desk: Desk) -> None:
    page = desk.open("/")
    page.set_viewport_size(PHONE)
    page.wait_for_function(
        """([width, height]) => {
            const box = document.querySelector('nav[aria-label=Main]').getBoundingClientRect();
            return box.y > 700 && box.width === width && document.documentElement.scrollHeight === height;
        }""",
        arg=[PHONE["width"], PHONE["height"]],
    )


def test_a_page_comes_back_by_itself_when_the_server_does(server: Server, desk: Desk) -> None:
    page = desk.open("/")
    page.evaluate("window.kept = true")
    server.stop()
    popup = page.locator("#popup")
    expect(popup).to_contain_text("UNIUN was stopped, or cannot be reached.")
    expect(popup).to_contain_text("To start UNIUN again: make run")
    expect(popup).to_be_visible()
    server.start()
    page.wait_for_function("window.kept === undefined && window.did_handshake === true")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    expect(popup).to_be_hidden()
    desk.complaints.clear()  # the browser writes each vain attempt to connect to its console
