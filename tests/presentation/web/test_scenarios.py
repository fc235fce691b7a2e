"""Scenarios 1, 4 and 7 of docs/scheduler.md: what a user does in the browser, on the real engine, read off the scheduler's
page and the trace that it exports."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from data.models.store import FileModelStore
from tests.presentation.web.conftest import Desk, Server, Start
from tests.presentation.web.trace import Line, Trace, follow_trace

pytestmark = pytest.mark.model
PATIENCE_S = 240
BOUNDARY_S = 2.0
"""A token takes some ten milliseconds; this machine may do much else at the same time."""
WORK = """([kind, flow]) => {
    const stop = new AbortController();
    (window.work ??= {})[flow] = () => stop.abort();
    fetch("/v1/chat/completions", {
        method: "POST",
        signal: stop.signal,
        headers: {"Content-Type": "application/json"},
        body: JSON.stringify({
            model: "smollm2-135m", max_tokens: 1500, service_tier: "flex", metadata: {kind, flow},
            messages: [{role: "user", content: "List words."}],
            response_format: {type: "json_schema", json_schema: {name: "long", schema: {
                type: "object", required: ["words"], properties: {words: {
                    type: "array", minItems: 1000, items: {type: "string", maxLength: 12}}}}}},
        }),
    }).catch(() => undefined);
}"""


@pytest.fixture(scope="module")
def server(model_store: FileModelStore, start: Start) -> Server:
    return start(model=True)


@pytest.fixture
def witness(desk: Desk) -> Page:
    """The scheduler's page. It is no surface."""
    return desk.open("/scheduler")


class Work:
    """Long work of one kind that another program asks for: a grammar lets the model come to no early end."""

    def __init__(self, trace: Trace, kind: str, flow: str) -> None:
        self._trace = trace
        self.flow = flow
        trace.page.evaluate(WORK, [kind, flow])
        self.job = trace.wait("submit", flow=flow, timeout_s=PATIENCE_S)["job"]

    def runs(self) -> None:
        self._trace.wait("first_token", job=self.job, timeout_s=PATIENCE_S)

    def stop(self) -> None:
        self._trace.page.evaluate("flow => window.work[flow]()", self.flow)
        self._trace.wait("cancelled", job=self.job)


def gave_way(trace: Trace, work: Work, kind: str) -> Line:
    """The work was stopped at a boundary for a job of that kind, whose start is returned."""
    stop = trace.wait("preempt", job=work.job, timeout_s=PATIENCE_S)
    assert trace.wait("submit", job=stop["by"])["kind"] == kind
    stopped = trace.wait("stopped", job=work.job, after=stop["at"])
    start = trace.wait("dispatch", job=stop["by"], after=stop["at"])
    assert stopped["t"] - stop["t"] <= BOUNDARY_S
    assert start["t"] - stopped["t"] <= BOUNDARY_S
    return start


def goes_on(trace: Trace, work: Work, after: Line) -> None:
    again = trace.wait("dispatch", job=work.job, after=after["at"], timeout_s=PATIENCE_S)
    assert again["resumed"] is True
    work.stop()


def read_off(witness: Page, work: Work, words: str, folder: Path) -> None:
    """What the page tells: in its last decisions, in its picture, and in the file that it gives."""
    expect(witness.locator(".s-part", has_text="Last decisions")).to_contain_text(words)
    witness.locator("svg.s-svg .s-mark").first.wait_for(state="attached")
    with witness.expect_download() as download:
        witness.get_by_role("button", name="Export the last 10 minutes").click()
    download.value.save_as(folder / "trace.jsonl")
    lines = [json.loads(line) for line in (folder / "trace.jsonl").read_text(encoding="utf-8").splitlines()]
    told = [line["event"] for line in lines if line.get("job") == work.job]
    stop = told.index("preempt")
    assert told[stop : stop + 3] == ["preempt", "stopped", "dispatch"]
    assert told[-1] == "cancelled"


def test_1_a_chat_stops_the_deck_at_the_next_token(desk: Desk, witness: Page, tmp_path: Path) -> None:
    trace = follow_trace(witness)
    deck = Work(trace, "nataraj", "cards in the background")
    deck.runs()
    page = desk.open("/")
    page.get_by_role("textbox", name="Message").press_sequentially("Hi")
    start = gave_way(trace, deck, "chat")
    assert start["tier"] == 1  # what is known of the question is read while it is typed
    page.keyboard.press("Enter")
    trace.wait("dispatch", kind="chat", tier=0, after=start["at"], timeout_s=PATIENCE_S)
    expect(page.locator(".u-answer .u-prose")).to_contain_text(" ", timeout=PATIENCE_S * 1000)
    page.keyboard.press("Escape")
    goes_on(trace, deck, start)
    read_off(witness, deck, "made way for Chat", tmp_path)


def test_4_the_deck_that_is_opened_goes_before_a_gana(desk: Desk, witness: Page, tmp_path: Path) -> None:
    trace = follow_trace(witness)
    gana = Work(trace, "gana", "morning report")
    gana.runs()
    cards = Work(trace, "nataraj", "all")
    deck = desk.open("/deck")
    start = gave_way(trace, gana, "nataraj")
    assert (start["job"], start["tier"]) == (cards.job, 1)
    assert trace.wait("foreground", kind="nataraj")["at"] < start["at"]
    deck.close()
    left = trace.wait("foreground", kind=None, after=start["at"])
    cards.stop()
    goes_on(trace, gana, left)
    read_off(witness, gana, "made way for", tmp_path)


def test_7_the_note_that_is_opened_is_read_before_the_deck(desk: Desk, witness: Page, tmp_path: Path) -> None:
    trace = follow_trace(witness)
    note = desk.open("/notes")
    note.get_by_role("button", name="New note").click()
    note.get_by_label("Title").fill("Uji")
    trace.wait("foreground", kind="extract")
    deck = Work(trace, "nataraj", "cards again")
    deck.runs()
    note.locator("textarea").first.fill("Uji is a town of tea near Kyoto. Mika grows tea there.")
    start = gave_way(trace, deck, "extract")
    assert (start["tier"], start["flow"]) == (1, note.url.rpartition("/")[2])
    note.close()
    goes_on(trace, deck, start)
    read_off(witness, deck, "made way for", tmp_path)
