"""Models in a browser: what fits, fetching, using, removing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from domain.entities.models import Memory, PullProgress, RemoteModel
from domain.entities.scheduler import RunSpan, SchedulerSnapshot
from domain.usecases.models import ModelShelf
from presentation.web.model_words import (
    fit_words,
    holds_words,
    server_words,
    speed_words,
    switch_words,
)
from presentation.web.pulls import fraction, pull_words
from tests.presentation.web.conftest import Desk, Server
from tests.presentation.web.fetching import fail, fetching_server, go


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with fetching_server(tmp_path_factory.mktemp("data")) as server:
        yield server


def row(page: Page, name: str) -> Locator:
    return page.locator("li.u-model").filter(has=page.get_by_role("heading", name=name, exact=True))


def test_the_life_of_a_model(server: Server, desk: Desk) -> None:
    page = desk.open("/models")
    expect(page.get_by_role("heading", name="No model is installed")).to_be_visible()
    tiny = row(page, "Tiny")
    expect(tiny).to_contain_text("needs 300 MB,")
    expect(tiny).to_contain_text("100 MB to fetch")
    expect(row(page, "Huge")).to_contain_text("this machine has")
    expect(row(page, "Huge")).to_contain_text("does not fit")

    row(page, "Huge").evaluate("(row) => { row.dataset.kept = 'yes' }")

    # Fetched, cancelled, gone on with, failed, gone on with again.
    tiny.get_by_role("button", name="Fetch Tiny").click()
    expect(tiny).to_contain_text("Fetching: 30 MB of 100 MB")
    row(page, "Other").get_by_role("button", name="Fetch Other").click()
    expect(row(page, "Other")).to_contain_text("Waiting for the download before it")
    row(page, "Other").get_by_role("button", name="Cancel fetching Other").click()
    expect(row(page, "Other").get_by_role("button", name="Fetch Other")).to_be_visible()
    tiny.get_by_role("button", name="Cancel fetching Tiny").focus()
    page.keyboard.press("Enter")
    tiny.get_by_role("button", name="Go on fetching Tiny").click()
    expect(tiny).to_contain_text("Fetching: 30 MB of 100 MB")
    fail(server, "tiny")
    expect(tiny.get_by_role("alert")).to_contain_text("cannot be reached")
    go(server, "tiny")
    go(server, "other")
    tiny.get_by_role("button", name="Go on fetching Tiny").click()
    expect(row(page, "tiny")).to_contain_text("in use")
    expect(row(page, "tiny").get_by_role("button", name="Use tiny")).to_have_count(0)
    row(page, "Other").get_by_role("button", name="Fetch Other").click()

    # Used: it becomes the default and is loaded.
    row(page, "other").get_by_role("button", name="Use other").focus()
    page.keyboard.press("Enter")
    expect(row(page, "other")).to_contain_text("loaded now")
    expect(row(page, "other")).to_contain_text("in use")
    expect(row(page, "tiny")).not_to_contain_text("in use")
    expect(row(page, "tiny").get_by_role("button", name="Use tiny")).to_be_visible()
    expect(row(page, "other").get_by_role("button", name="Use other")).to_have_count(0)
    expect(row(page, "other").get_by_role("button", name="Load now: other")).to_have_count(0)

    # Removed, after a question that tells what would follow.
    dialog = page.get_by_role("dialog")
    row(page, "other").get_by_role("button", name="Remove other").click()
    expect(dialog).to_contain_text("It is the model in use")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    row(page, "tiny").get_by_role("button", name="Remove tiny").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    row(page, "tiny").get_by_role("button", name="Remove tiny").click()
    expect(dialog).to_contain_text("become free")
    expect(dialog).not_to_contain_text("It is the")
    dialog.get_by_role("button", name="Remove").click()
    expect(row(page, "tiny")).to_have_count(0)
    expect(row(page, "Tiny")).to_be_visible()
    row(page, "other").get_by_role("button", name="Remove other").click()
    expect(dialog).to_contain_text("It is the only model: without it nothing answers")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(row(page, "Huge")).to_have_attribute("data-kept", "yes")  # nothing of it has changed


def test_a_model_that_the_catalogue_does_not_know(desk: Desk) -> None:
    page = desk.open("/models")
    page.get_by_text("Another model").click()
    name = page.get_by_label("Repository on the Hugging Face hub (MLX)")
    name.fill("nonsense")
    page.get_by_role("button", name="Fetch", exact=True).click()
    expect(page.get_by_text("Write it as owner/name.")).to_be_visible()
    page.get_by_label("A name for a model of your own").fill("mine")
    page.get_by_label("Its folder (MLX) or its .gguf file").fill("/somewhere/mine.gguf")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(row(page, "mine")).to_be_visible()


GB = 10**9


def test_whether_it_fits_in_words() -> None:
    memory = Memory(total_bytes=16 * GB, free_bytes=11 * GB)
    assert fit_words(int(2.6 * GB), memory) == ("needs 2.6 GB, 11.0 GB free", True)
    assert fit_words(12 * GB, memory) == ("needs 12.0 GB, 11.0 GB free", False)
    assert fit_words(20 * GB, memory) == ("needs 20.0 GB, this machine has 16.0 GB", False)


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        (("http://127.0.0.1:8000/v1",), "runs in another program on this machine"),
        (("https://llm.example.org/v1",), "runs on llm.example.org"),
        (("http://a.example/v1", "http://b.example/v1"), "runs on 2 servers"),
    ],
)
def test_where_a_model_of_a_server_runs_in_words(urls: tuple[str, ...], words: str) -> None:
    assert server_words(RemoteModel(urls=urls, model="m")) == words


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (None, ""),
        (100, "takes in about 75 words at once"),
        (8192, "takes in about 6,100 words at once"),
    ],
)
def test_how_much_a_model_takes_in_in_words(tokens: int | None, words: str) -> None:
    assert holds_words(tokens) == words


def test_how_slow_a_large_model_would_be_in_words() -> None:
    def run(tokens: int | None, seconds: float, **fields: object) -> RunSpan:
        return RunSpan.model_validate(
            {
                "job": "j", "kind": "chat", "flow": "c", "model": "small", "tier": 0, "start": 0.0, "end": seconds,
                "resumed": False, "reason": "", "how": "finished", "tokens": tokens, "by": None, "why": "",
            } | fields
        )  # fmt: skip

    shelf = ModelShelf(
        installed=(),
        available=(),
        default="small",
        weights={"small": GB // 10, "large": 2 * GB, "huge": 20 * GB},
    )
    memory = Memory(total_bytes=16 * GB, free_bytes=11 * GB, accelerated=False)
    runs = [
        run(60, 1.5),
        run(60, 1.0),
        run(20, 0.1),
        run(None, 1),
        run(90, 1, resumed=True),
        run(9, 1, end=None),
    ]
    assert "about 2 words a second, estimated" in speed_words("large", shelf, memory, runs)
    assert "about a word in 4 s" in speed_words("huge", shelf, memory, runs)
    assert speed_words("large", shelf, memory, []).endswith("this model is slow.")
    assert speed_words("small", shelf, memory, runs) == ""
    assert speed_words("large", shelf, memory.model_copy(update={"accelerated": True}), runs) == ""


def test_what_a_switch_waits_for_in_words() -> None:
    def seen(**fields: object) -> SchedulerSnapshot:
        idle = SchedulerSnapshot(
            at=0, resident=None, loading=None, foreground=None, running=None, tiers={}, switches=(),
            kind_vruntime_s={}, flow_vruntime_s={}, extract_share=0, extract_exhausted=False, swap_cost_s={},
            linger_until=None, last_reason="", swaps=0, preemptions=0,
        )  # fmt: skip
        return idle.model_copy(update=fields)

    assert switch_words("big", seen(), asked=False) == ""
    assert switch_words("big", seen(), asked=True) == "Waiting…"
    loading = seen(loading="big", loading_s=6.2, swap_cost_s={"big": 10.0})
    assert switch_words("big", loading, asked=True) == "Loading… 6 s of about 10 s"


def test_progress_in_words() -> None:
    step = PullProgress(stage="download", done_bytes=31_000_000, total_bytes=93_000_000)
    assert pull_words(step) == "Fetching: 31 MB of 93 MB"
    assert fraction(step) == pytest.approx(1 / 3)
    assert pull_words(PullProgress(stage="wait", done_bytes=0)) == "Another program fetches it…"
    assert pull_words(PullProgress(stage="download", done_bytes=5_000)) == "Fetching: 5 kB"
    assert fraction(PullProgress(stage="convert", done_bytes=5)) is None
    assert fraction(None) is None
