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


SCREENS = (Screen("chat-empty", "/"),)
