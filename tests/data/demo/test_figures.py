"""Figures from a trace written by hand, and the sentence made of them."""

from typing import Any

import pytest

from data.demo.figures import ChatLog, Trace, measure
from data.demo.verdict import verdict
from data.scheduling.events import Record
from domain.entities.demo import DemoPolicy, DemoRun
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import JobView, SchedulerSnapshot

CHAT, EXTRACT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA


def view(kind: LlmTaskKind, tokens: int, state: str) -> JobView:
    return JobView(
        id=f"{kind}-x",
        kind=kind,
        flow="f",
        model="m",
        tier=4,
        position=0 if state == "running" else 1,
        state=state,
        estimated_start_s=0,
        waited_s=0,
        tokens_done=tokens,
        service_s=0,
        preemptions=0,
    )


def snapshot(running: JobView | None = None, *queued: JobView, swaps: int = 0) -> SchedulerSnapshot:
    return SchedulerSnapshot(
        at=0,
        resident="m",
        loading=None,
        foreground=None,
        running=running,
        tiers={4: queued} if queued else {},
        switches=(),
        kind_vruntime_s={},
        flow_vruntime_s={},
        extract_share=0,
        extract_exhausted=False,
        swap_cost_s={},
        linger_until=None,
        last_reason="",
        swaps=swaps,
        preemptions=3,
    )


def record(at: float, event: str, kind: LlmTaskKind, flow: str = "f", **fields: Any) -> Record:
    return Record(at, event, {"job": f"{kind}-{flow}", "kind": kind, "flow": flow, **fields})


TRACE = (
    record(99, "dispatch", NATARAJ),
    Record(100, "swap_start", {"to": "m"}),
    record(101, "dispatch", NATARAJ),
    record(103, "stopped", NATARAJ, tokens_done=20),
    record(103, "dispatch", CHAT),
    record(104, "finish", CHAT, tokens_done=48),
    record(104, "dispatch", GANA, "letter"),
    record(105, "stopped", GANA, "letter", tokens_done=3),
    record(105, "dispatch", NATARAJ),
    record(106, "finish", NATARAJ, tokens_done=50),
    record(106, "cancelled", CHAT, "never ran"),
    record(107, "dispatch", GANA, "letter"),
    record(108, "finish", GANA, "letter", tokens_done=30),
    record(108, "dispatch", EXTRACT),
)


def chat(sent_s: float, first_s: float | None, thirtieth_s: float | None, finished: bool = True) -> ChatLog:
    return ChatLog("?", sent_s, first_s, thirtieth_s, finished=finished)


def run(policy: DemoPolicy = "uniun", *chats: ChatLog, window_s: float = 10) -> DemoRun:
    trace = Trace(100)
    for line in TRACE:
        trace(line)
    return measure(
        policy,
        window_s,
        0.5,
        trace,
        [log.seen(window_s) for log in chats or (chat(1, 1.5, 2), chat(2, 3, 4), chat(4, None, None, False))],
        {"letter": 3.0, "digest": 6.0},
        snapshot(view(EXTRACT, 40, "running"), view(NATARAJ, 7, "queued"), view(CHAT, 9, "queued"), swaps=1),
        1,
    )


def test_background_tokens_count_the_finished_the_running_and_the_stopped_and_no_chat() -> None:
    figures = run()
    assert figures.background_tokens == 50 + 30 + 40 + 7
    assert figures.background_tokens_per_s == pytest.approx(12.7)
    assert figures.finished == {CHAT: 1, NATARAJ: 1, GANA: 1}


def test_spans_and_busy_time() -> None:
    spans = [(span.kind, span.start_s, span.end_s) for span in run().spans]
    assert spans == [
        (NATARAJ, 1, 3),
        (CHAT, 3, 4),
        (GANA, 4, 5),
        (NATARAJ, 5, 6),
        (GANA, 7, 8),
        (EXTRACT, 8, 10),
    ]
    assert run().busy_s == pytest.approx(8)
    assert run().chats_s == pytest.approx(1)
    assert (run().preemptions, run().swaps) == (3, 0)


def test_a_gana_is_late_from_its_due_time_to_its_first_start_or_to_the_end() -> None:
    letter, digest = run().ganas
    assert (letter.late_s, letter.started) == (1, True)
    assert (digest.late_s, digest.started) == (4, False)


def test_a_chat_without_an_answer_counts_with_what_it_has_waited_and_is_marked() -> None:
    waits = run().first_token_s
    assert (waits.count, waits.p50.value_s, waits.p50.lower_bound) == (3, 1, False)
    assert (waits.max.value_s, waits.max.lower_bound) == (6, True)
    late = run("fifo", chat(1, 9, None, False), chat(8, None, None, False)).first_token_s
    assert (late.p50.value_s, late.p50.lower_bound) == (2, True)
    assert (late.max.value_s, late.max.lower_bound) == (8, True), "the unanswered one may come after it"


def test_an_answer_that_ends_before_its_thirtieth_token_has_no_such_time() -> None:
    short = run("uniun", chat(1, 1.5, None), chat(2, 3, 5)).thirtieth_token_s
    assert short is not None
    assert (short.count, short.max.value_s) == (1, 3)
    assert run("uniun", chat(1, 1.5, None)).thirtieth_token_s is None


def test_a_chat_log_takes_the_times_of_the_first_and_the_thirtieth_token() -> None:
    log = ChatLog("?", 1.0)
    log.tell(1.5, "a", 2)
    log.tell(1.9, "b", 29)
    log.tell(2.5, "c", 31)
    log.tell(3.0, "d", 40)
    seen = log.seen(9)
    assert (seen.waited_s, seen.thirtieth_waited_s) == (0.5, 1.5)
    assert (seen.text, seen.tokens) == ("abcd", 40)


def test_the_verdict_follows_the_figures() -> None:
    idle = run("idle", chat(0, 0.5, 1), chat(2, 2.4, 3))
    quick = run("uniun", chat(0, 1, 2), chat(2, 2.6, 3))
    slow = run("fifo", chat(0, 8, 9), chat(2, None, None, False))
    said = verdict([idle, slow, quick])
    assert said.startswith("Under uniun the slowest of 2 chats waited 1.00 s")
    assert "2.0 times the idle machine's 0.50 s" in said
    assert "more than 8.00 s under fifo" in said
    assert "the chats took 10% of the device, and the background kept 100% of the tokens a second" in said


def test_the_verdict_says_so_when_another_policy_is_better() -> None:
    quick = run("fifo", chat(0, 1, 2))
    slow = run("uniun", chat(0, 8, 9))
    assert verdict([quick, slow]).startswith("Under fifo the slowest of 1 chat waited 1.00 s")


def test_the_verdict_of_one_run() -> None:
    assert "12.7" not in verdict([run("uniun")])
    assert verdict([run("uniun")]).endswith("the background produced 13 tokens a second.")
    assert verdict([run("idle", chat(0, 1, 2))]) == "On the idle machine the slowest of 1 chat waited 1.00 s."
