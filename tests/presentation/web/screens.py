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


def _load(page: Page) -> None:
    """Other programs, Ganas and note reading ask for more than can be had at once; then a chat. A browser sends six."""
    page.evaluate(
        """() => {
            const words = "river ".repeat(800);
            const ask = (user, kind, tier) => fetch("/v1/chat/completions", {
                method: "POST",
                headers: {"Content-Type": "application/json"},
                body: JSON.stringify({
                    model: "tiny", user, service_tier: tier, max_tokens: 800, metadata: {kind, flow: user},
                    messages: [{role: "user", content: "Say: " + words}],
                }),
            }).catch(() => undefined);
            ask("morning report", "gana", "flex");
            ask("feeds", "gana", "flex");
            ask("editor plug-in", "api", "flex");
            ask("Bees in March", "extract", "flex");
            setTimeout(() => ask("garden", "chat", "default"), 1500);
        }"""
    )
    decisions = page.locator(".s-part", has_text="Last decisions")
    decisions.get_by_text("made way for Chat").wait_for(timeout=20_000)
    page.locator("svg.s-svg .s-mark").first.wait_for(state="attached")


SCREENS = (
    Screen("chat-empty", "/"),
    Screen("chat", "/c/talk-bread"),
    Screen("chat-branches", "/c/talk-bread", _branches),
    Screen("chat-list", "/", _list, phone_only=True),
    Screen("chat-missing", "/c/nothing-here"),
    Screen("scheduler-idle", "/scheduler"),
    Screen("scheduler", "/scheduler", _load),
)
