"""Nataraj in a browser: the deck by mouse, touch and keys."""

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Browser, Page, expect

from domain.entities.llm import LlmTaskKind
from domain.entities.nataraj import DeckWork
from domain.entities.scheduler import JobView, SchedulerSnapshot
from presentation.web.deck_words import fill_words
from tests.presentation.web.conftest import PATIENCE_MS, PHONE, Desk, Server, Start

CARD = ".u-deck-card[data-card]"


async def notes_to_join(container: DeclarativeContainer) -> None:
    notes = container.notes_controller()
    for title in ("Bees", "Willow", "Rain", "Bread", "Moss", "Clay"):
        await notes.add(f"A few words about {title.lower()}.", title=title)
    manases = container.manas_controller()
    await manases.create("Pair")
    await manases.add("Pair", ["Bees", "Willow"])
    await manases.create("Nothing")


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=notes_to_join, tokens_per_s=400)


def open_deck(desk: Desk, path: str = "/deck") -> Page:
    page = desk.open(path)
    expect(page.locator(CARD)).to_be_visible()
    return page


def top(page: Page) -> str:
    return str(page.locator(CARD).get_attribute("data-card"))


def expect_next(page: Page, before: str) -> None:
    page.wait_for_function(
        "before => document.querySelector('.u-deck-card[data-card]')?.dataset.card !== before", arg=before
    )


def drag(page: Page, by: int) -> None:
    box = page.locator(CARD).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by / 2, y, steps=4)
    page.mouse.move(x + by, y, steps=4)
    page.mouse.up()


def test_cards_come_and_go_by_keys(desk: Desk) -> None:
    page = open_deck(desk)
    first = top(page)
    drop = page.get_by_role("button", name="Drop", exact=True)
    drop.evaluate("(button) => { button.dataset.stays = 'yes' }")
    page.keyboard.press("ArrowRight")
    expect_next(page, first)
    expect(drop).to_have_attribute("data-stays", "yes")
    kept = page.locator(".u-deck-state a")
    expect(page.locator(".u-deck-state")).to_contain_text("Kept: ")
    expect(kept).to_have_attribute("href", f"/notes/{first}")
    expect(page.get_by_role("status").filter(has_text="Kept as a note")).to_be_attached()
    second = top(page)
    page.keyboard.press("ArrowLeft")
    expect_next(page, second)
    expect(page.locator(".u-deck-state")).not_to_contain_text("Kept")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("keep the card")
    before = top(page)
    page.keyboard.press("ArrowRight")  # a key in a dialog is the dialog's
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert top(page) == before
    page.keyboard.press("o")
    expect(page.get_by_role("dialog")).to_contain_text("Notes that this card joins")
    assert page.get_by_role("dialog").get_by_role("link").count() in (2, 3)


def test_a_key_that_is_pressed_before_the_page_is_connected_counts(desk: Desk) -> None:
    page = open_deck(desk)
    first = top(page)
    page.evaluate("window.did_handshake = false")
    page.keyboard.press("ArrowLeft")
    page.evaluate("window.did_handshake = true")
    expect_next(page, first)


def test_what_was_done_to_a_card_can_be_undone(desk: Desk) -> None:
    page = open_deck(desk)
    first = top(page)
    page.keyboard.press("ArrowRight")
    expect_next(page, first)
    second = top(page)
    page.keyboard.press("ArrowLeft")
    expect_next(page, second)
    state = page.locator(".u-deck-state")
    expect(state).to_contain_text("Dropped.")
    page.keyboard.press("u")
    expect(page.locator(CARD)).to_have_attribute("data-card", second)
    expect(state).to_contain_text("Kept: ")  # what was done before can be undone too
    page.keyboard.press("Control+z")
    expect(page.locator(CARD)).to_have_attribute("data-card", first)
    expect(state.get_by_role("button", name="Undo")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="It is back.").first).to_be_attached()
    page.reload()
    expect(page.locator(CARD)).to_have_attribute("data-card", first)
    page.goto(f"/notes/{first}")
    expect(page.get_by_text("There is no note")).to_be_visible()


def test_undo_is_a_button_too_and_says_when_it_comes_too_late(desk: Desk) -> None:
    page = open_deck(desk)
    first = top(page)
    page.get_by_role("button", name="Drop", exact=True).click()
    expect_next(page, first)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(CARD)).to_have_attribute("data-card", first)
    page.keyboard.press("ArrowRight")
    expect_next(page, first)
    note = desk.open(f"/notes/{first}")
    note.get_by_label("Title").fill("Mine now")
    expect(note.get_by_text("Saved", exact=True)).to_be_visible()
    page.bring_to_front()
    second = top(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("“Mine now” has been changed since").first).to_be_visible()
    assert top(page) == second


def test_buttons_do_the_same_and_can_be_reached_by_tab(desk: Desk) -> None:
    page = open_deck(desk)
    for name in ("Drop", "Keep"):
        before = top(page)
        page.get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Enter")
        expect_next(page, before)


def test_a_card_is_pulled_with_the_mouse(desk: Desk) -> None:
    page = open_deck(desk)
    before = top(page)
    drag(page, 50)  # not far enough
    page.wait_for_function(f"document.querySelector('{CARD}').style.transform === ''")
    assert top(page) == before
    drag(page, 200)
    expect_next(page, before)
    expect(page.locator(".u-deck-state")).to_contain_text("Kept: ")


def test_a_card_is_pulled_with_a_finger(browser: Browser, server: Server) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, base_url=server.url)
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = context.new_page()
        page.goto("/deck")
        page.wait_for_function("window.did_handshake === true")
        expect(page.locator(CARD)).to_be_visible()
        before = top(page)
        touch = context.new_cdp_session(page)
        for kind, x in (("touchStart", 260), ("touchMove", 200), ("touchMove", 120), ("touchMove", 60)):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": 250}]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        expect_next(page, before)
    finally:
        context.close()


def test_two_pages_show_one_deck(desk: Desk) -> None:
    one, other = open_deck(desk), open_deck(desk)
    before = top(one)
    assert top(other) == before
    one.bring_to_front()
    one.keyboard.press("ArrowLeft")
    expect_next(one, before)
    expect_next(other, before)


def test_a_scope_that_is_used_up_says_so(desk: Desk) -> None:
    page = desk.open("/deck")
    page.get_by_label("Notes that the cards are drawn from").click()
    page.get_by_role("option", name="Pair").click()
    page.wait_for_url("**/deck?manas=*")
    expect(page.locator(CARD)).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("You have seen every combination")).to_be_visible()


def test_without_notes_it_says_what_to_do(desk: Desk) -> None:
    page = desk.open("/deck")
    page.get_by_label("Notes that the cards are drawn from").click()
    page.get_by_role("option", name="Nothing").click()
    expect(page.get_by_role("heading", name="No cards yet")).to_be_visible()
    expect(page.get_by_role("link", name="To the notes")).to_be_visible()


def job(kind: LlmTaskKind, flow: str) -> JobView:
    return JobView(
        id=flow, kind=kind, flow=flow, model="m", tier=3, position=0, state="running", estimated_start_s=0,
        waited_s=0, tokens_done=0, service_s=0, preemptions=0,
    )  # fmt: skip


def snapshot(running: JobView | None, *queued: JobView, loading: str | None = None) -> SchedulerSnapshot:
    return SchedulerSnapshot(
        at=0, resident="m", loading=loading, foreground=None, running=running, tiers={3: queued}, switches=(),
        kind_vruntime_s={}, flow_vruntime_s={}, extract_share=0, extract_exhausted=False, swap_cost_s={},
        linger_until=None, last_reason="", swaps=0, preemptions=0,
    )  # fmt: skip


OURS = job(LlmTaskKind.NATARAJ, "all")


@pytest.mark.parametrize(
    ("ready", "writing", "seen", "words"),
    [
        (0, 0, snapshot(None), "No card ready."),
        (1, 0, snapshot(None), "1 card ready."),
        (3, 2, snapshot(OURS), "3 cards ready, writing 2 more."),
        (
            3,
            2,
            snapshot(job(LlmTaskKind.CHAT, "c"), OURS),
            "3 cards ready, writing 2 more; waiting for the chat.",
        ),
        (0, 8, snapshot(None, OURS, loading="big"), "No card ready, writing 8; waiting for big to load."),
        (
            2,
            1,
            snapshot(job(LlmTaskKind.NATARAJ, "other"), OURS),
            "2 cards ready, writing 1 more; waiting for another deck.",
        ),
    ],
)
def test_the_fill_state_in_words(ready: int, writing: int, seen: SchedulerSnapshot, words: str) -> None:
    assert fill_words(ready, DeckWork(writing=writing), "all", seen) == words


def test_keys_are_offered_where_there_are_some(desk: Desk) -> None:
    page = open_deck(desk)
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    page.set_viewport_size(PHONE)
    expect(page.get_by_role("button", name="Keys")).to_be_hidden()
