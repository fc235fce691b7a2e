"""What the scheduler is told of pages that are opened, hidden, turned to, closed, and that die."""

from playwright.sync_api import Page

from tests.presentation.web.conftest import Desk

SHOWN = """async ([wanted, patience]) => {
    for (let tries = 0; tries < patience * 10; tries++) {
        const now = (await (await fetch('/scheduler')).json()).foreground;
        if (JSON.stringify(now && now[0]) === JSON.stringify(wanted)) return true;
        await new Promise(done => setTimeout(done, 100));
    }
    return false;
}"""
HIDE = """hidden => {
    Object.defineProperty(document, 'visibilityState', {get: () => hidden ? 'hidden' : 'visible', configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def looks_at(witness: Page, kind: str | None, within_s: float = 60) -> None:
    assert witness.evaluate(SHOWN, [kind, within_s]), f"the surface is not {kind}"


def test_the_page_that_the_user_turned_to_last_is_the_surface(desk: Desk) -> None:
    witness = desk.open("/settings")  # has no surface, and is not turned to again
    chat = desk.open("/")
    looks_at(witness, "chat")
    deck = desk.open("/deck")
    looks_at(witness, "nataraj")
    chat.evaluate("window.dispatchEvent(new Event('focus'))")
    looks_at(witness, "chat")
    chat.evaluate(HIDE, True)
    looks_at(witness, "nataraj")
    chat.evaluate(HIDE, False)
    looks_at(witness, "chat")
    chat.close()
    looks_at(witness, "nataraj")
    # A laptop that sleeps, a browser that hangs: it falls silent without a word.
    deck.evaluate(
        "() => { const wait = setInterval(() => {}, 1e9); for (let id = 0; id <= wait; id++) clearInterval(id) }"
    )
    looks_at(witness, None)
