"""The chat in a browser, over an engine that says what it is told."""

from playwright.sync_api import Page, expect

from tests.presentation.web.conftest import Desk, Server


def ask(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message")
    box.fill(text)
    box.press("Enter")


def answers(page: Page) -> list[str]:
    return page.locator(".u-answer .u-prose").all_inner_texts()


def test_a_question_is_answered_and_kept(page: Page) -> None:
    ask(page, "Say: Bread needs **time** and salt.")
    expect(page.locator(".u-answer strong")).to_have_text("time")
    expect(page.get_by_role("button", name="Answer again")).to_be_visible()
    assert "/c/" in page.url
    page.reload()
    expect(page.locator(".u-answer")).to_contain_text("Bread needs time and salt.")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    expect(page.get_by_role("link", name="Say: Bread needs")).to_have_attribute("aria-current", "page")
