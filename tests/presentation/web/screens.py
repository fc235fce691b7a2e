"""Every page that is photographed and examined: one row each."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page


def _nothing(page: Page) -> None:
    return


@dataclass(frozen=True)
class Screen:
    """A page in one state; `prepare` brings it there after it has been opened."""

    name: str
    path: str
    prepare: Callable[[Page], None] = _nothing
    phone_only: bool = False


def _branches(page: Page) -> None:
    page.get_by_role("button", name="More about this conversation").click()
    page.get_by_role("menuitem", name="Branches").click()
    page.locator(".u-tree").wait_for()


def _list(page: Page) -> None:
    page.get_by_role("button", name="Conversations").click()


SCREENS = (
    Screen("chat-empty", "/"),
    Screen("chat", "/c/talk-bread"),
    Screen("chat-branches", "/c/talk-bread", _branches),
    Screen("chat-list", "/", _list, phone_only=True),
    Screen("chat-missing", "/c/nothing-here"),
)
