"""The demo over a fake engine in virtual time, and briefly over the real one."""

import asyncio
from pathlib import Path

import pytest

from data.clock import SystemClock
from data.demo.load import CARDS, CHATS, GANAS
from data.demo.play import EngineDemo, scaled
from data.inference.fake import FakeRunner
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from data.models.store import FileModelStore
from data.scheduling.config import SchedulerConfig
from domain.entities.demo import (
    DemoEvent,
    DemoMachine,
    DemoMoment,
    DemoPolicy,
    DemoReport,
    DemoRun,
    DemoStarting,
)
from domain.entities.llm import LlmTaskKind
from domain.entities.models import InstalledModel
from domain.errors import EngineError, ModelLoadFailed
from domain.repositories.inference_runner import RunnerJob, RunnerProgress
from tests.data.demo.virtual_time import VirtualClock, run_virtually

BOUNDARY_S = 0.02
ALL: tuple[DemoPolicy, ...] = ("idle", "fifo", "two-lane", "uniun")


class Shelf:
    def get(self, name: str) -> InstalledModel:
        return InstalledModel(name=name, source="test", size_bytes=1, gguf_path=Path("x.gguf"))


class Theatre:
    """Every boundary of the fake engine takes `BOUNDARY_S`; a chunk of the prompt is one boundary, like a token."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.runners: list[FakeRunner] = []
        self.events: list[DemoEvent] = []

    def play(self, *policies: DemoPolicy, window_s: float = 40) -> DemoReport:
        demo = EngineDemo(self._open, Shelf(), self.clock, SchedulerConfig())  # type: ignore[arg-type]
        return run_virtually(self.clock, demo.play("tiny", policies, window_s, self.events.append))

    def _open(self) -> FakeRunner:
        runner = FakeRunner(("tiny",), prefill_chunk=20, on_boundary=self._pass_time)
        self.runners.append(runner)
        return runner

    def _pass_time(self, job: RunnerJob, progress: RunnerProgress) -> None:
        self.clock.seconds += BOUNDARY_S


@pytest.fixture(scope="module")
def theatre() -> Theatre:
    return Theatre()


@pytest.fixture(scope="module")
def runs(theatre: Theatre) -> dict[DemoPolicy, DemoRun]:
    return {run.policy: run for run in theatre.play(*ALL).runs}


def test_the_story(runs: dict[DemoPolicy, DemoRun]) -> None:
    idle, fifo, lanes, uniun = (runs[policy] for policy in ALL)
    assert not any(chat.first_token for chat in fifo.chats), "behind the deck and the backfill"
    assert lanes.chats[0].first_token, "behind the deck only"
    assert lanes.chats[0].waited_s > 10 * uniun.chats[0].waited_s
    for alone, loaded in zip(idle.chats, uniun.chats, strict=True):
        assert loaded.first_token
        assert loaded.waited_s <= alone.waited_s + BOUNDARY_S + 1e-6, "one boundary, no more"
        assert loaded.text == alone.text, "the same question has the same answer"


def test_the_background_goes_on(runs: dict[DemoPolicy, DemoRun]) -> None:
    uniun, fifo = runs["uniun"], runs["fifo"]
    assert uniun.background_tokens > 0.7 * fifo.background_tokens
    assert uniun.busy_s == pytest.approx(uniun.window_s, rel=0.01)
    assert {span.kind for span in uniun.spans} == {
        LlmTaskKind.CHAT,
        LlmTaskKind.EXTRACT,
        LlmTaskKind.NATARAJ,
        LlmTaskKind.GANA,
    }
    assert uniun.preemptions > CHATS
    assert fifo.preemptions == 0
    _assert_no_chat_was_passed_over(uniun)


def test_ganas_start_soon_after_they_are_due_only_where_deadlines_count(
    runs: dict[DemoPolicy, DemoRun],
) -> None:
    assert len(runs["uniun"].ganas) == GANAS
    assert all(gana.started for gana in runs["uniun"].ganas)
    assert not any(gana.started for gana in (*runs["fifo"].ganas, *runs["two-lane"].ganas))


def test_every_policy_gets_the_same_load_at_the_same_moments(runs: dict[DemoPolicy, DemoRun]) -> None:
    for policy in ALL[1:]:
        sent = {chat.question: chat.sent_s for chat in runs[policy].chats}
        assert sent == pytest.approx({chat.question: chat.sent_s for chat in runs["fifo"].chats}, abs=0.1)
        assert list(sent) == [chat.question for chat in runs["idle"].chats]


def test_each_policy_has_an_engine_of_its_own_which_is_closed(
    theatre: Theatre, runs: dict[DemoPolicy, DemoRun]
) -> None:
    assert len(theatre.runners) == len(runs)
    assert all(runner.closed for runner in theatre.runners)
    assert all(run.swaps == 0 for run in runs.values()), "the model was loaded before the window"


def test_the_watcher_sees_it_all(theatre: Theatre, runs: dict[DemoPolicy, DemoRun]) -> None:
    assert isinstance(theatre.events[0], DemoMachine), "while nothing has been measured yet"
    starts = [event for event in theatre.events if isinstance(event, DemoStarting)]
    assert [(start.policy, start.number, start.count) for start in starts] == [
        (policy, number, 4) for number, policy in enumerate(ALL, 1)
    ]
    moments = [event for event in theatre.events if isinstance(event, DemoMoment) and event.policy == "uniun"]
    assert len(moments) > 100
    assert [moment.at_s for moment in moments] == sorted(moment.at_s for moment in moments)
    assert {moment.surface for moment in moments} == {"nothing", "the chat", "the deck"}
    assert sum(isinstance(event, DemoRun) for event in theatre.events) == len(runs)


def test_it_is_deterministic_in_virtual_time() -> None:
    first, second = (Theatre().play("uniun", window_s=10).runs for _ in range(2))
    assert first == second


def test_the_policys_times_are_scaled_to_the_window() -> None:
    config, scale = scaled(SchedulerConfig(), 30)
    assert scale == pytest.approx(0.1)
    assert config.share_window_s == pytest.approx(30)
    assert config.fair_slice_s == pytest.approx(3)
    assert config.max_queued == SchedulerConfig().max_queued


def test_a_model_that_cannot_be_loaded_ends_it_and_closes_the_engine() -> None:
    theatre = Theatre()
    opened = theatre._open

    def broken() -> FakeRunner:
        runner = opened()
        runner.load_errors["tiny"] = ModelLoadFailed("tiny could not be loaded.")
        return runner

    theatre._open = broken  # type: ignore[method-assign]
    with pytest.raises(ModelLoadFailed):
        theatre.play("uniun")
    assert theatre.runners[0].closed


def test_a_job_that_fails_ends_it_with_the_cause() -> None:
    theatre = Theatre()
    # Room for the warm-up, not for a card.
    theatre._open = lambda: FakeRunner(  # type: ignore[method-assign]
        ("tiny",), prefill_chunk=20, context_tokens=100, on_boundary=theatre._pass_time
    )
    with pytest.raises(EngineError, match=r"A job of the demo failed: The prompt has \d+ tokens"):
        theatre.play("fifo")


def test_being_cancelled_closes_the_engine() -> None:
    theatre = Theatre()
    demo = EngineDemo(theatre._open, Shelf(), theatre.clock, SchedulerConfig())  # type: ignore[arg-type]

    async def interrupted() -> None:
        task = asyncio.create_task(demo.play("tiny", ["uniun"], 40, theatre.events.append))
        await asyncio.sleep(15)  # virtual seconds
        assert isinstance(theatre.events[-1], DemoMoment)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    run_virtually(theatre.clock, interrupted())
    assert theatre.runners[0].closed


@pytest.mark.model
def test_a_short_demo_on_the_real_engine(model_store: FileModelStore) -> None:
    """Checks what must hold on any machine, however slow: order, shape, and that the JSON reads back."""
    clock = SystemClock()
    demo = EngineDemo(
        lambda: EngineRunner(model_store, EngineOptions(backend="llama.cpp"), clock),
        model_store,
        clock,
        SchedulerConfig(),
    )
    report = asyncio.run(demo.play("smollm2-135m", ("fifo", "uniun"), 4, lambda event: None))
    assert DemoReport.model_validate_json(report.model_dump_json()) == report
    assert report.engine == "llama.cpp"
    fifo, uniun = report.runs
    assert all(len(run.chats) == CHATS for run in report.runs)
    order = [span.kind for span in fifo.spans]
    assert LlmTaskKind.CHAT not in order[:CARDS], "behind the whole deck"
    _assert_no_chat_was_passed_over(uniun)


def _assert_no_chat_was_passed_over(run: DemoRun) -> None:
    """From a chat's sending to its start no background job was put on the device: it waited for one boundary."""
    starts = [span.start_s for span in run.spans if span.kind is LlmTaskKind.CHAT]
    assert starts, "a chat started"
    assert all(run.chats[at].waited_s > starts[at] - run.chats[at].sent_s for at in range(len(starts)))
    for at, chat in enumerate(run.chats):
        begun_s = starts[at] if at < len(starts) else float("inf")
        assert not [
            span
            for span in run.spans
            if span.kind is not LlmTaskKind.CHAT and chat.sent_s + 0.001 < span.start_s < begun_s
        ]
