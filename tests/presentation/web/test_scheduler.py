"""The scheduler's page: live, silent when hidden, readable without eyes, and sound with ten thousand jobs."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import Locator, Page, expect

from domain.entities.scheduler import SchedulerSnapshot
from tests.data.scheduling.trace_checker import check_format
from tests.presentation.web.conftest import ROOT, Desk, Server, Start

PACE = 40.0
"""Tokens a second; an answer has 60."""


NOTE_ID: list[str] = []


async def one_note(container: DeclarativeContainer) -> None:
    NOTE_ID.append(
        (await container.notes_controller().add("First flight at 12 °C.", title="Bees in March")).id
    )


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=one_note, tokens_per_s=PACE)


@pytest.fixture
def programs(server: Server) -> Iterator[ThreadPoolExecutor]:
    """Other programs, each waiting for its answer."""
    with ThreadPoolExecutor(12) as pool:
        yield pool


def ask(server: Server, name: str, *, patient: bool, kind: str = "api") -> int:
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": f"Tell {name} something about rivers and mills."}],
        "max_tokens": 60,
        "user": name,
        "service_tier": "flex" if patient else "default",
        "metadata": {} if kind == "api" else {"kind": kind, "flow": name},
    }
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=180).status_code


def open_scheduler(desk: Desk) -> Page:
    page = desk.open("/scheduler")
    expect(page.get_by_role("heading", name="Scheduler", level=1)).to_be_visible()
    return page


def part(page: Page, title: str) -> Locator:
    return page.locator(".s-part", has=page.get_by_role("heading", name=title, exact=True))


def test_the_page_is_sent_with_what_it_shows(server: Server) -> None:
    """What comes only afterwards pushes away what is being read."""
    assert ask(server, "sent whole", patient=True, kind="extract") == 200
    page = httpx.get(f"{server.url}/scheduler", headers={"Accept": "text/html"}).text
    assert "Model in memory" in page


def test_an_idle_scheduler_says_so(desk: Desk) -> None:
    page = open_scheduler(desk)
    expect(page.locator(".s-part").first).to_contain_text("Nothing runs")
    expect(part(page, "Who waits")).to_contain_text("Nobody waits.")
    page.locator("summary", has_text="What am I looking at?").press("Enter")
    expect(page.get_by_text("One language model runs on this machine")).to_be_visible()


def test_who_runs_who_waits_and_why_is_seen_live(
    desk: Desk, server: Server, programs: ThreadPoolExecutor
) -> None:
    page = open_scheduler(desk)
    # Enough of them that some are left when the page has shown the first.
    patient = [programs.submit(ask, server, f"batch-{n}", patient=True) for n in range(10)]
    now = page.locator(".s-part").first
    expect(now).to_contain_text("Other programs")
    expect(now).to_contain_text("writing:")
    queue = page.locator(".s-part", has_text="Who waits")
    expect(queue.get_by_role("heading", name="Fair turns")).to_be_visible()
    hasty = programs.submit(ask, server, "editor", patient=False)
    decisions = page.locator(".s-part", has_text="Last decisions")
    expect(decisions).to_contain_text(
        "made way for Other programs: “What you look at” comes before “Fair turns”."
    )
    assert hasty.result() == 200
    assert [one.result() for one in patient] == [200] * 10
    expect(now).to_contain_text("Nothing runs")
    expect(page.locator("svg.s-svg rect.s-fill-api").first).to_be_attached()
    expect(page.locator("svg.s-svg .s-mark").first).to_be_attached()
    expect(page.locator("svg.s-svg")).to_have_attribute(
        "aria-label", re.compile(r"Other programs .*\b[1-9]\d* times? somebody gave way")
    )
    page.locator("summary", has_text="Show as a table").press("Enter")
    expect(page.get_by_role("cell", name="gave way", exact=False).first).to_be_visible()


def test_ids_are_shown_as_the_titles_that_they_stand_for(desk: Desk, server: Server) -> None:
    assert ask(server, NOTE_ID[0], patient=True, kind="extract") == 200
    page = open_scheduler(desk)
    decisions = page.locator(".s-part", has_text="Last decisions")
    expect(decisions).to_contain_text("Reading notes (Bees in March) started")


def test_what_is_exported_is_a_trace(desk: Desk, server: Server, tmp_path: Path) -> None:
    assert ask(server, "editor", patient=False) == 200
    page = open_scheduler(desk)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export the last 10 minutes").press("Enter")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.suffix == ".jsonl"
    trace = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    check_format(trace)
    assert {"submit", "dispatch", "first_token", "finish"} <= {line["event"] for line in trace}


def test_a_hidden_page_is_sent_nothing(desk: Desk, server: Server, programs: ThreadPoolExecutor) -> None:
    page = open_scheduler(desk)
    page.evaluate(
        """() => {
            Object.defineProperty(document, "visibilityState", {get: () => window.seen ?? "visible"});
            window.show = (how) => { window.seen = how; document.dispatchEvent(new Event("visibilitychange")); };
            window.show("hidden");
        }"""
    )
    page.evaluate("window.changes = 0")
    page.evaluate(
        "new MutationObserver(() => window.changes++).observe(document.querySelector('#content'), "
        "{subtree: true, childList: true, characterData: true})"
    )
    assert (
        programs.submit(ask, server, "batch", patient=True).result() == 200
    )  # one look may have been under way
    # What was sent before comes before this answer.
    page.locator("summary", has_text="Show as a table").press("Enter")
    expect(page.get_by_role("cell", name="finished").first).to_be_visible()
    page.evaluate("window.changes = 0")
    assert programs.submit(ask, server, "batch", patient=True).result() == 200
    assert page.evaluate("window.changes") == 0
    page.evaluate("window.show('visible')")
    page.wait_for_function("window.changes > 2")


def test_the_terminal_shows_the_same(server: Server) -> None:
    assert ask(server, "editor", patient=False) == 200
    snapshot = SchedulerSnapshot.model_validate_json(uniun(server, "ps", "--json"))
    assert snapshot.resident == "tiny"
    assert "tiny is in memory" in uniun(server, "ps")
    assert "Other programs (user editor) started" in uniun(server, "top")


def uniun(server: Server, *command: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "uniun", *command],
        env={**server.environment, "COLUMNS": "100"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    ).stdout
