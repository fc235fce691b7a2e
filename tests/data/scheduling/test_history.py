"""The history of the scheduler: what it keeps of any trace, its limits, its readers, its export, its counters."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from data.clock import SystemClock
from data.scheduling import history as history_module
from data.scheduling.events import Record
from data.scheduling.history import TraceHistory
from data.scheduling.inspection import Gauges, gauges
from data.scheduling.scenario import Scenario
from data.scheduling.simulation import Simulation
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import History, MissedRecords, SchedulerChange, TraceRecord
from domain.errors import TooManyWatchers
from presentation.cli.gantt import gantt_rows
from tests.data.scheduling.scenario_families import FAMILIES, scenario
from tests.data.scheduling.trace_checker import check_format
from tests.data.scheduling.trace_properties import judge

CHAT, EXTRACT, NATARAJ, GANA = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA
FOREVER = 1e12


class HandClock(SystemClock):
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class SimulatedSource:
    """A simulation, watched as the dispatcher is."""

    def __init__(self, load: Scenario, clock: HandClock) -> None:
        self.listeners: list[Callable[[Record], None]] = []
        source = self

        class Watched(Simulation):
            def _write(self, record: Record) -> None:
                super()._write(record)
                clock.seconds = max(clock.seconds, record.t)
                for listener in source.listeners:
                    listener(record)

        self.simulation = Watched(load)

    def observe(self, listener: Callable[[Record], None]) -> None:
        self.listeners.append(listener)

    def observe_tokens(self, listener: Callable[[LlmTaskKind, int], None]) -> None:
        """A simulation tells of no single token."""

    def gauges(self) -> Gauges:
        return gauges(self.simulation.scheduler, self.simulation.scheduler.now)


def played(load: Scenario, **limits: Any) -> tuple[TraceHistory, Simulation, HandClock]:
    clock = HandClock()
    source = SimulatedSource(load, clock)
    history = TraceHistory(source, clock, **limits)
    source.simulation.run()
    clock.seconds = max(clock.seconds, source.simulation.trace[-1]["t"])
    return history, source.simulation, clock


def read(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def story(history: History) -> list[tuple[str, str]]:
    return [(run.job, run.how) for run in history.runs]


MODEL = {"load_s": 10, "prefill_tps": 500, "decode_tps": 20}


def load_of(*events: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.model_validate(
        {"models": {"X": MODEL, "Y": MODEL}, "loaded": "X", "events": list(events), **more}
    )


def submit(at: float, job: str, kind: str, **more: Any) -> dict[str, Any]:
    spec = {"id": job, "kind": kind, "flow": f"{job}-flow", "model": "X", "prompt_tokens": 50}
    return {"at": at, "submit": {**spec, "output_tokens": 100, **more}}


CHAT_OVER_DECK = load_of(
    submit(0, "n1", "nataraj", output_tokens=400),
    submit(5, "c1", "chat"),
    submit(6, "g1", "gana", model="Y"),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_exported_whole_is_the_trace_and_keeps_the_contract(family: str) -> None:
    load = scenario(family, 1)
    history, simulation, _ = played(load, window_s=FOREVER, most=10**9)
    exported = read(history.export())
    assert exported == simulation.trace
    judge(load, exported)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("window_s", "most"), [(40.0, 10**9), (FOREVER, 25), (15.0, 10)])
def test_a_history_stays_within_its_limits_and_every_reader_of_traces_can_read_it(
    family: str, window_s: float, most: int
) -> None:
    clock = HandClock()
    source = SimulatedSource(scenario(family, 2), clock)
    history = TraceHistory(source, clock, window_s=window_s, most=most)
    seen = 0

    def look(record: Record) -> None:
        nonlocal seen
        seen += 1
        assert len(history._ring) <= most
        assert history._ring[0].t >= record.t - window_s
        assert len(history._carried) <= len(source.simulation.scheduler.callers) + len(history._ring)
        if seen % (20 if seen < 400 else 1_000) == 0:
            exported = read(history.export())
            check_format(exported)
            assert list(gantt_rows(exported, 80))
            view = history.recent()
            assert len(view.runs) <= most + 1
            assert all(run.end is None or run.end >= view.since for run in view.runs)

    source.observe(look)
    source.simulation.run()
    assert seen > 20
    clock.seconds += 2 * window_s
    assert all(run.end is None for run in history.recent().runs)
    check_format(read(history.export()))


def test_runs_swaps_and_decisions_are_told_with_their_reasons() -> None:
    history, _, _ = played(CHAT_OVER_DECK)
    view = history.recent()
    assert story(view) == [("n1", "preempted"), ("c1", "finished"), ("n1", "finished"), ("g1", "finished")]
    first, chat, again, _ = view.runs
    assert (first.by, first.tier, first.resumed) == ("c1", 4, False)
    assert "outranks" in first.why
    assert first.tokens is not None
    assert 0 < first.tokens < 400
    assert (chat.kind, chat.flow, chat.tier, chat.end) == (CHAT, "c1-flow", 0, again.start)
    assert (again.resumed, again.tokens, again.by) == (True, 400, None)
    (swap,) = view.swaps
    assert (swap.old, swap.new, swap.trigger, swap.ok) == ("X", "Y", "g1", True)
    assert swap.end == pytest.approx(swap.start + 10)
    assert [(d.what, d.job, d.kind) for d in view.decisions] == [
        ("start", "n1", NATARAJ),
        ("stop", "n1", NATARAJ),
        ("start", "c1", CHAT),
        ("resume", "n1", NATARAJ),
        ("swap", "g1", GANA),
        ("start", "g1", GANA),
    ]
    assert (view.decisions[1].by, view.decisions[1].by_kind) == ("c1", CHAT)
    assert all(decision.reason for decision in view.decisions)


def test_a_run_that_its_caller_cancelled_says_so_and_one_that_goes_on_is_open() -> None:
    load = load_of(submit(0, "n1", "nataraj"), {"at": 2, "cancel": "n1"}, submit(4, "g1", "gana"), until=5)
    history, _, _ = played(load)
    view = history.recent()
    assert story(view) == [("n1", "cancelled"), ("g1", "running")]
    assert view.runs[1].end is None


def test_a_job_shared_by_two_goes_on_under_the_second_name() -> None:
    load = load_of(
        submit(0, "e1", "extract", coalesce_key="k"),
        submit(0, "e0", "extract", output_tokens=900),
        submit(1, "c1", "chat"),
        submit(1.5, "e2", "extract", coalesce_key="k"),
        {"at": 8, "cancel": "e1"},
    )
    history, simulation, _ = played(load, window_s=FOREVER)
    assert read(history.export()) == simulation.trace
    assert all(run.how != "running" for run in history.recent().runs)


def test_readers_get_every_record_and_a_slow_one_is_told_what_it_missed() -> None:
    async def main() -> None:
        clock = HandClock()
        source = SimulatedSource(CHAT_OVER_DECK, clock)
        history = TraceHistory(source, clock, watch_buffer=5)
        changes = history.watch()
        first = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        source.simulation.run()
        got: list[SchedulerChange] = [await first]
        total = len(source.simulation.trace) - 1
        while not (isinstance(got[-1], TraceRecord) and got[-1].serial == total):
            got.append(await anext(changes))
        assert got[0] == MissedRecords(missed=total - 5)
        serials = [change.serial for change in got if isinstance(change, TraceRecord)]
        assert serials == list(range(total - 4, total + 1))
        await changes.aclose()  # type: ignore[attr-defined]
        assert not history._watchers

    asyncio.run(main())


def test_no_more_readers_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MOST_WATCHERS", 1)

    async def main() -> None:
        clock = HandClock()
        history = TraceHistory(SimulatedSource(CHAT_OVER_DECK, clock), clock)
        first = asyncio.ensure_future(anext(history.watch()))
        await asyncio.sleep(0)
        with pytest.raises(TooManyWatchers):
            await anext(history.watch())
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not history._watchers

    asyncio.run(main())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_counters_agree_with_the_summary_of_the_trace(family: str) -> None:
    history, simulation, _ = played(scenario(family, 3))
    metrics, summary = history.metrics(), simulation.trace[-1]
    for counted in metrics.kinds:
        told = summary["kinds"][counted.kind.value]
        assert counted.submitted == told["count"]
        for name in ("finished", "cancelled", "failed", "rejected"):
            assert getattr(counted, name) == told[name]
    assert {kind.kind.value for kind in metrics.kinds} == set(summary["kinds"])
    waits = [line["t"] for line in simulation.trace if line["event"] == "first_token"]
    assert sum(queue.first_token.count for queue in metrics.queues) == len(waits)
    assert sum(kind.service_s for kind in metrics.kinds) <= summary["busy_s"] + 1e-3
    assert metrics.swaps == summary["swaps"]
    assert metrics.swap_s <= summary["swap_s"] + 1e-3
    assert metrics.preemptions <= summary["preemptions"]
    assert sum(queue.preemptions for queue in metrics.queues) == metrics.preemptions
    for queue in metrics.queues:
        assert list(queue.wait.counts) == sorted(queue.wait.counts)
        assert queue.wait.count >= queue.wait.counts[-1]


def test_waits_are_counted_once_by_the_tier_that_the_job_had_then() -> None:
    history, _, _ = played(CHAT_OVER_DECK)
    queues = {(queue.kind, queue.tier): queue for queue in history.metrics().queues}
    assert queues[CHAT, 0].wait.count == 1
    assert queues[NATARAJ, 4].wait.count == 1
    assert queues[NATARAJ, 4].preemptions == 1
    assert queues[GANA, 4].wait.sum_s > 10
    assert not any(queue.queued for queue in queues.values())


def test_a_model_that_nobody_asked_for_is_told_as_unloaded() -> None:
    history, _, _ = played(CHAT_OVER_DECK)
    history.note(
        Record(999.0, "unload", {"model": "Y", "reason": "nobody asked for Y as long as it was to be kept"})
    )
    last = history.recent().decisions[-1]
    assert (last.what, last.model) == ("unload", "Y")


def test_a_run_is_lost_when_its_model_is_loaded_again_and_not_when_another_device_loads() -> None:
    history, _, _ = played(load_of(submit(0, "g1", "gana"), until=1))
    start = {"from": None, "trigger": "g1", "reason": "nothing to do for the resident model"}
    history.note(Record(2.0, "swap_start", {**start, "to": "far away"}))
    assert story(history.recent()) == [("g1", "running")]
    history.note(Record(3.0, "swap_start", {**start, "to": "X"}))
    assert story(history.recent()) == [("g1", "lost")]
    assert [swap.new for swap in history.recent().swaps] == ["far away", "X"]
    history.note(Record(4.0, "swap_end", {"to": "far away", "seconds": 2.0, "ok": True}))
    assert [(swap.new, swap.ok) for swap in history.recent().swaps] == [("far away", True), ("X", None)]
