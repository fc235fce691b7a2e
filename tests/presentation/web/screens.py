"""Every page that is photographed and examined: one row each."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import FilePayload, Page

from tests.presentation.web.crowd import CROWD

WAITING = 3
"""So many jobs of one flow may wait at the server of these pictures."""


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


def _full(page: Page) -> None:
    page.evaluate(CROWD, ["tiny", "talk-bread", WAITING + 1])
    page.get_by_role("textbox", name="Message").fill("And what do I do with the rest of the starter?")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Try again").wait_for()
    page.evaluate("window.crowd.abort()")


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
    decisions.get_by_text("made way for Chat").wait_for()
    page.locator("svg.s-svg .s-mark").first.wait_for(state="attached")


def _note(page: Page) -> None:
    page.get_by_label("Title").wait_for()
    page.get_by_text("Read into the graph").wait_for()


def _both(page: Page) -> None:
    _note(page)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".u-note-preview li").first.wait_for()


def _composer(page: Page) -> None:
    _both(page)
    page.get_by_role("button", name="Chat", exact=True).click()
    page.get_by_role("textbox", name="Ask about this note").fill("Say: Feed it at eight, before the coffee.")
    page.get_by_role("textbox", name="Ask about this note").press("Enter")
    page.get_by_role("button", name="Insert into note").wait_for()


def _conflict(page: Page) -> None:
    _note(page)
    page.evaluate(
        "() => { const note = location.pathname.split('/').pop(); localStorage.setItem('uniun/draft/' + note, "
        "JSON.stringify({ title: 'Rye bread', text: 'What I had written.', seen: 'before' })); location.reload(); }"
    )
    page.get_by_text("This browser still had text of yours").wait_for()


def _found(page: Page) -> None:
    page.get_by_text("these words").first.wait_for()
    page.get_by_role("heading", name="Close in meaning").wait_for()


def _concept(page: Page) -> None:
    page.locator(".u-graph text").first.wait_for()
    page.get_by_text("The same as a list").click()
    page.get_by_role("button", name="Starter").click()
    page.get_by_role("region", name="Concept").get_by_role("link").first.wait_for()


def _import(page: Page) -> None:
    """The odd file is named; nothing is imported, so that the other pictures stay the same."""
    broken = FilePayload(name="half.md", mimeType="text/markdown", buffer=b"\0\1")
    page.locator("input[type=file]").set_input_files([broken])
    page.get_by_role("list", name="Odd files").wait_for()


def _card(page: Page) -> None:
    page.locator(".u-deck-card[data-card]").wait_for()


def _undo(page: Page) -> None:
    _card(page)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Undo").wait_for()


def _keys(page: Page) -> None:
    _card(page)
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()


def _digest(page: Page) -> None:
    page.get_by_role("link", name="Morning digest", exact=True).click()
    page.wait_for_url("**/ganas/*")
    page.get_by_role("region", name="History").locator("summary").first.click()
    page.get_by_role("link", name="Willow").wait_for()


def _refused(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("Weekly letter")
    page.get_by_label("What it does", exact=True).fill(
        "Say: Dear neighbour, the beans are up and the bees are out."
    )
    page.get_by_role("button", name="Try it").click()
    page.get_by_text("It would write this").wait_for()
    page.get_by_label("When it runs", exact=True).fill("whenever")
    page.get_by_text("says no time that is understood").wait_for()


def _more_models(page: Page) -> None:
    page.get_by_text("Another model").click()
    page.get_by_label("A name for a model of your own").wait_for()


def _tuned(page: Page) -> None:
    page.get_by_text("It is not installed.").wait_for()
    share = page.get_by_label("Share of the time for reading notes, %")
    share.fill("150")
    share.press("Enter")
    page.get_by_text("Not kept").wait_for()


def _care(page: Page) -> None:
    page.get_by_role("button", name="Back up now").click()
    page.get_by_text("The backup is there").wait_for()


SCREENS = (
    Screen("chat-empty", "/"),
    Screen("chat", "/c/talk-bread"),
    Screen("chat-branches", "/c/talk-bread", _branches),
    Screen("chat-list", "/", _list, phone_only=True),
    Screen("chat-full", "/c/talk-bread", _full),
    Screen("chat-missing", "/c/nothing-here"),
    Screen("notes", "/notes"),
    Screen("notes-search", "/notes?q=baking+bread", _found),
    Screen("notes-nothing", "/notes?q=zzzz&tag=garden"),
    Screen("note", "/notes/find?name=Sourdough", _note),
    Screen("note-chat", "/notes/find?name=Sourdough", _composer),
    Screen("note-conflict", "/notes/find?name=Rye%20bread", _conflict),
    Screen("manases", "/notes/manases"),
    Screen("import", "/notes/import", _import),
    Screen("concepts", "/notes/graph", _concept),
    Screen("scheduler-idle", "/scheduler"),
    Screen("scheduler", "/scheduler", _load),
    Screen("welcome", "/welcome"),
    Screen("deck", "/deck", _card),
    Screen("deck-undo", "/deck", _undo),
    Screen("deck-keys", "/deck", _keys),
    Screen("ganas", "/ganas"),
    Screen("gana", "/ganas", _digest),
    Screen("gana-new", "/ganas/new", _refused),
    Screen("models", "/models", _more_models),
    Screen("settings", "/settings", _tuned),
    Screen("settings-care", "/settings", _care),
)
