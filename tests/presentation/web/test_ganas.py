"""Ganas in a browser: the list, the form with its preview, the log."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Browser, Locator, Page, expect

from domain.entities.gana import Gana, GanaDraft, GanaProgress, GanaRun
from domain.entities.llm import Preempted, Prefilling, TextDelta, Waiting
from presentation.web.gana_words import (
    distance_words,
    due_words,
    moment_words,
    progress_words,
    run_figures,
    run_words,
)
from tests.presentation.web.conftest import PHONE, Desk, Server, Start, desk_before


async def a_watcher(container: DeclarativeContainer) -> None:
    notes = container.notes_controller()
    await notes.add("Bees fly at 12 degrees. Say: The willow is early.", title="Bees", tags=["garden"])
    manases = container.manas_controller()
    await manases.create("Garden")
    await manases.add("Garden", ["Bees"])
    ganas = container.gana_controller()
    fields = {
        "name": "Watcher",
        "task": "Say what is new.",
        "trigger": "when a new note with #garden comes",
        "output_tag": "advice",
    }
    await ganas.create(fields)


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=a_watcher, tokens_per_s=150)


@pytest.fixture
def slow_desk(browser: Browser, start: Start) -> Iterator[Desk]:
    """What is written here has not ended by the time that it is stopped."""
    yield from desk_before(browser, start(tokens_per_s=10))


def row(page: Page, name: str) -> Locator:
    return page.locator("li.u-gana").filter(has=page.get_by_role("heading", name=name, exact=True))


def fill(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)


def test_a_gana_from_the_form_to_its_log(desk: Desk) -> None:
    page = desk.open("/ganas/new")

    # What is missing is said beside its field.
    page.get_by_role("button", name="Save and switch on").click()
    expect(page.get_by_text("Give it a name.")).to_be_visible()
    expect(page.get_by_text("Say what it is to do.")).to_be_visible()
    fill(page, "Name", "Morning digest")
    expect(page.get_by_text("Give it a name.")).to_have_count(0)
    fill(page, "What it does", "Sum up. Say: It rained, and the bees stayed in.")

    # The trigger: what is not understood, an example, and the next three times.
    fill(page, "When it runs", "whenever you like")
    expect(page.get_by_text("says no time that is understood")).to_be_visible()
    page.get_by_role("button", name="every morning").click()
    expect(page.get_by_text("Every day at 8:00. Next:")).to_contain_text("then")

    # A preview, which publishes nothing.
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_label("What it wrote", exact=True)).to_contain_text("the bees stayed in.")
    expect(page.get_by_text("It would write this")).to_be_visible()

    # A webhook that is none is refused beside its field, in the part that is folded away.
    page.get_by_text("More", exact=True).click()
    fill(page, "Webhook: an address that is sent what it wrote", "nowhere")
    page.get_by_role("button", name="Save and switch on").click()
    expect(page.get_by_text("The Gana was refused: its webhook should be a web address")).to_be_visible()
    fill(page, "Webhook: an address that is sent what it wrote", "")
    page.get_by_role("button", name="Save and switch on").click()
    page.wait_for_url("**/ganas/*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Morning digest")
    expect(page.get_by_role("switch", name="Runs by itself")).to_be_checked()
    expect(page.get_by_text("Next: ")).to_have_count(2)
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("It has not run yet.")

    # Run now, and what the log says of it.
    page.get_by_role("button", name="Run now").focus()
    page.keyboard.press("Enter")
    expect(history.locator("details")).to_have_count(1)
    expect(history).to_contain_text("Wrote a note")
    expect(history).to_contain_text("tokens")
    history.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(history).to_contain_text("the bees stayed in.")
    expect(history.get_by_role("link", name="Open the note")).to_be_visible()

    # Changed: the trigger that was not touched stays.
    fill(page, "Name", "Evening digest")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()

    # The name is taken.
    fill(page, "Name", "Watcher")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("There is a Gana Watcher already.")).to_be_visible()

    page.goto("/ganas")
    expect(row(page, "Evening digest")).to_contain_text("Every day at 8:00.")
    expect(row(page, "Evening digest")).to_contain_text("wrote a note")
    row(page, "Evening digest").get_by_role("button", name="Delete Evening digest").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(page, "Evening digest")).to_have_count(0)


def test_the_list_by_keyboard_and_why_nothing_was_written(desk: Desk) -> None:
    page, other = desk.open("/ganas"), desk.open("/ganas")
    watcher = row(page, "Watcher")
    expect(watcher).to_contain_text("On new notes tagged garden.")
    expect(watcher).to_contain_text("Off: it runs only when you say so.")
    page.bring_to_front()
    switch = page.get_by_role("switch", name="Watcher runs by itself")
    switch.focus()
    page.keyboard.press("Space")
    expect(watcher).to_contain_text("Waits for new notes. It looks seconds after one was written here")
    expect(row(other, "Watcher")).to_contain_text(
        "Waits for new notes. It looks seconds after one was written here"
    )
    expect(switch).to_be_focused()  # although its row was drawn anew
    page.get_by_role("button", name="Run Watcher now").focus()
    page.keyboard.press("Enter")
    expect(watcher).to_contain_text("wrote nothing: no note is new since its last run")
    page.get_by_role("link", name="Edit Watcher, and its history").click()
    page.wait_for_url("**/ganas/*")
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("Wrote nothing: no note is new since its last run")
    # Its stored trigger names what it reads; saving without touching it keeps both.
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.goto("/ganas")
    expect(row(page, "Watcher")).to_contain_text("On new notes tagged garden.")
    page.set_viewport_size(PHONE)
    expect(row(page, "Watcher").get_by_role("button", name="Delete Watcher")).to_be_visible()
    heights = (
        row(page, "Watcher")
        .locator(".u-wrap > .q-btn")
        .evaluate_all("(all) => [...new Set(all.map((one) => one.getBoundingClientRect().top))]")
    )
    assert len(heights) == 1  # no button wraps alone onto a second line


def test_a_run_can_be_stopped_and_outlives_its_page(slow_desk: Desk) -> None:
    page = slow_desk.open("/ganas/new")
    fill(page, "Name", "Long")
    fill(page, "What it does", "Write much. Say: " + "word " * 500)
    page.get_by_role("button", name="Save, leave it off").click()
    page.wait_for_url("**/ganas/*")
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_text("Writing,")).to_be_visible()
    page.goto("/ganas")
    long = row(page, "Long")
    expect(long).to_contain_text("running")
    expect(long).to_contain_text("Writing,")
    long.get_by_role("button", name="Stop Long").click()
    expect(long).to_contain_text("wrote nothing: it was stopped")


def test_a_preview_can_be_stopped(slow_desk: Desk) -> None:
    page = slow_desk.open("/ganas/new")
    fill(page, "Name", "Longer")
    fill(page, "What it does", "Write much. Say: " + "word " * 500)
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_label("What it wrote", exact=True)).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_role("button", name="Try it")).to_be_enabled()


def test_what_is_not_there_is_said(desk: Desk) -> None:
    page = desk.open("/ganas/nobody")
    expect(page.get_by_role("heading", name="This page cannot be shown")).to_be_visible()
    expect(page.get_by_text("nobody")).to_be_visible()


NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(seconds=20), "in less than a minute"),
        (timedelta(minutes=1), "in 1 minute"),
        (timedelta(minutes=90), "in 2 hours"),
        (timedelta(hours=-3), "3 hours ago"),
        (timedelta(days=2), "in 2 days"),
        (timedelta(seconds=-5), "just now"),
    ],
)
def test_distances_in_words(distance: timedelta, words: str) -> None:
    assert distance_words(distance) == words


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (0, "today at "),
        (1, "tomorrow at "),
        (-1, "yesterday at "),
        (3, "on Thursday at "),
        (30, "on 2026-12-30 at "),
    ],
)
def test_days_in_words(days: int, words: str) -> None:
    assert moment_words(NOW + timedelta(days=days), NOW).startswith(words)


def test_runs_in_words() -> None:
    run = GanaRun(
        id="r", gana_id="g", due_at=None, status="succeeded", started_at=NOW, seconds=3.14, tokens=42
    )
    assert (run_words(run), run_figures(run)) == ("wrote a note", "3.1 s, 42 tokens")
    missed = run.model_copy(
        update={"status": "skipped", "reason": "missed", "preemptions": 2, "by": "background"}
    )
    assert run_words(missed) == "wrote nothing: UNIUN was not running when it was due"
    nothing = run.model_copy(
        update={"status": "skipped", "reason": "no_new_input", "detail": "No note is tagged wool yet."}
    )
    assert run_words(nothing) == "wrote nothing: no note is tagged wool yet"
    assert run_figures(missed) == "3.1 s, 42 tokens, gave way 2 times, while the app was closed"


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (None, "Beginning…"),
        (
            GanaProgress(event=Waiting(position=1, estimated_start_s=None, reason="behind a chat")),
            "Waiting: behind a chat…",
        ),
        (GanaProgress(event=Prefilling(done_tokens=3, total_tokens=9)), "Reading, 3 of 9 tokens…"),
        (GanaProgress(event=TextDelta(text="a", tokens=1)), "Writing, 1 token so far…"),
        (
            GanaProgress(round=2, tool="search", event=Preempted(reason="a chat came")),
            "Round 2, after search: gave way, goes on soon: a chat came…",
        ),
    ],
)
def test_progress_in_words(progress: GanaProgress | None, words: str) -> None:
    assert progress_words(progress) == words


def test_a_reaction_that_waits_for_a_note_says_for_which() -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    draft = GanaDraft(name="g", task="Say it.", input_tag="wool", reactive=True)
    gana = Gana(id="g", draft=draft, enabled=True, created_at=now)
    assert due_words(gana, now, "Merino") == "Reads “Merino” when it has been left alone for a minute."
    assert due_words(gana, now).startswith("Waits for new notes.")
    off = gana.model_copy(update={"enabled": False})
    assert due_words(off, now, "Merino") == "Off: it runs only when you say so."


def test_a_stored_gana_says_what_its_words_mean_and_when_it_runs_next(page: Page) -> None:
    page.goto(f"{page.url.rstrip('/')}/ganas/new")
    page.get_by_label("Name").fill("Mornings")
    page.get_by_label("What it does", exact=True).fill("Sum up.")
    page.get_by_role("button", name="every morning").click()
    expect(page.get_by_text("Every day at 8:00. Next:")).to_be_visible()
    page.get_by_role("button", name="Save and switch on").click()
    expect(page.get_by_text("Every day at 8:00. Next:")).to_be_visible()
    page.get_by_role("switch", name="Runs by itself").click()
    expect(page.get_by_text("Every day at 8:00. Off: it runs only when you say so.")).to_be_visible()
