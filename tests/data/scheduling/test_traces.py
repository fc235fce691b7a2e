"""The simulator's traces, judged by the contract: random loads, the eight scenarios of the note, long runs."""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from data.scheduling.scenario import Scenario
from data.scheduling.simulation import Simulation, simulate_checked
from tests.data.scheduling.scenario_families import FAMILIES, scenario
from tests.data.scheduling.trace_checker import Violation
from tests.data.scheduling.trace_properties import judge

Trace = list[dict[str, Any]]
Event = dict[str, Any]

MODEL = {"load_s": 10, "prefill_tps": 500, "decode_tps": 20}
TOKEN_S = 0.05
CHUNK_S = 128 / 500


def play(events: list[Event], *, models: str = "X", **more: Any) -> Trace:
    """The trace of a scenario with X loaded; checked after every event, and judged."""
    data = {"models": dict.fromkeys(models, MODEL), "loaded": "X", "events": events, **more}
    parsed = Scenario.model_validate(data)
    trace = simulate_checked(parsed).trace
    judge(parsed, trace)
    return trace


def submit(at: float, job: str, kind: str, flow: str, prompt: int, output: int, **more: Any) -> Event:
    spec = {
        "id": job,
        "kind": kind,
        "flow": flow,
        "model": "X",
        "prompt_tokens": prompt,
        "output_tokens": output,
    }
    return {"at": at, "submit": spec | more}


def of(trace: Trace, event: str, job: str | None = None) -> Trace:
    return [line for line in trace if line["event"] == event and job in (None, line.get("job"))]


def only(trace: Trace, event: str, job: str | None = None) -> dict[str, Any]:
    (line,) = of(trace, event, job)
    return line


# -- random loads


@pytest.mark.parametrize("family", FAMILIES)
def test_random_loads_keep_the_contract(family: str) -> None:
    costly = family in ("backfill", "backlogged_flows", "kinds_with_weights")
    for seed in range(2 if costly else 8):
        load = scenario(family, seed)
        judge(load, simulate_checked(load).trace)


def test_a_trace_is_the_same_byte_for_byte_whatever_the_hash_seed(tmp_path: Path) -> None:
    load = scenario("everything", 3).model_dump_json(exclude_unset=True)
    path = tmp_path / "load.json"
    path.write_text(load, encoding="utf-8")
    outputs = []
    for seed in ("0", "1", "4242"):
        command = [sys.executable, "-m", "uniun", "simulate", str(path), "--json"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.append(
            subprocess.run(command, env=environment, capture_output=True, check=True, timeout=240).stdout
        )
    assert outputs[0].count(b"\n") > 50
    assert outputs[0] == outputs[1] == outputs[2]


def drop_an_end(trace: Trace) -> None:
    trace.remove(of(trace, "finish")[0])


def lose_tokens(trace: Trace) -> None:
    of(trace, "stopped")[-1]["tokens_done"] = 0


def start_over(trace: Trace) -> None:
    next(line for line in of(trace, "dispatch") if line["resumed"])["resumed"] = False


def idle(trace: Trace) -> None:
    at = trace.index(of(trace, "dispatch", "c1")[0])
    for line in trace[at:]:
        line["t"] += 3.0


def keep_the_chat_waiting(trace: Trace) -> None:
    for event in ("preempt", "stopped"):
        trace.remove(of(trace, event, "n1")[0])


def run_on_an_absent_model(trace: Trace) -> None:
    for event in ("swap_start", "swap_end"):
        trace.remove(only(trace, event))


def miscount(trace: Trace) -> None:
    trace[-1]["busy_s"] += 1


@pytest.mark.parametrize(
    "damage",
    [drop_an_end, lose_tokens, start_over, idle, keep_the_chat_waiting, run_on_an_absent_model, miscount],
)
def test_the_judge_notices(damage: Callable[[Trace], None]) -> None:
    events = [
        submit(0, "n1", "nataraj", "deck", 200, 400),
        submit(5, "c1", "chat", "conv", 50, 40),
        submit(6, "g1", "gana", "g", 50, 40, model="Y"),
    ]
    load = Scenario.model_validate({"models": {"X": MODEL, "Y": MODEL}, "loaded": "X", "events": events})
    trace = Simulation(load)
    trace.run()
    judge(load, trace.trace)
    damage(trace.trace)
    with pytest.raises(Violation):
        judge(load, trace.trace)


# -- the eight scenarios of the note


def test_scenario_1_a_chat_stops_nataraj_within_one_boundary_and_nataraj_resumes() -> None:
    trace = play([submit(0, "n1", "nataraj", "deck", 200, 400), submit(5, "c1", "chat", "conv", 50, 40)])
    preempt = only(trace, "preempt")
    assert (preempt["t"], preempt["job"], preempt["by"], preempt["tier"]) == (5.0, "n1", "c1", 4)
    started = only(trace, "dispatch", "c1")
    assert 5.0 <= started["t"] <= 5.0 + TOKEN_S
    stopped = only(trace, "stopped", "n1")
    assert stopped["tokens_done"] == 92  # 0.4 s of prefill, then a token every 0.05 s until 5 s
    finished = only(trace, "finish", "c1")
    again = of(trace, "dispatch", "n1")[1]
    assert again["resumed"] is True
    assert again["t"] == finished["t"]
    assert only(trace, "finish", "n1")["t"] == pytest.approx(again["t"] + (400 - 92) * TOKEN_S)
    assert only(trace, "finish", "n1")["service_s"] == pytest.approx(0.4 + 400 * TOKEN_S)


def test_scenario_2_two_ganas_alternate_slice_by_slice() -> None:
    trace = play([submit(0, name, "gana", name, 100, 2000) for name in ("a", "b")])
    runs = [(line["job"], line["t"]) for line in of(trace, "dispatch")]
    assert [job for job, _ in runs[:6]] == ["a", "b", "a", "b", "a", "b"]
    lengths = [after - before for (_, before), (_, after) in pairwise(runs[:6])]
    assert all(30.0 <= length <= 30.0 + TOKEN_S + 1e-3 for length in lengths)


def test_scenario_3_a_late_tick_is_t3_and_stops_nataraj() -> None:
    trace = play(
        [
            submit(0, "n1", "nataraj", "deck", 100, 1000),
            submit(10, "late", "gana", "g", 50, 40, deadline=9),
            submit(20, "soon", "gana", "h", 50, 40, deadline=25),
        ]
    )
    first, second = of(trace, "preempt", "n1")
    assert (first["t"], first["by"]) == (10.0, "late")
    assert (second["t"], second["by"]) == (25.0, "soon")  # a timer: nothing arrives at 25 s
    assert only(trace, "submit", "soon")["tier"] == 4
    assert only(trace, "dispatch", "soon")["tier"] == 3


def test_scenario_4_opening_the_deck_hoists_it_over_a_running_gana_until_it_is_left() -> None:
    trace = play(
        [
            submit(0, "g1", "gana", "g", 100, 1000),
            submit(1, "n1", "nataraj", "deck", 100, 1000),
            submit(1, "n2", "nataraj", "other", 100, 1000),
            {"at": 9, "foreground": {"kind": "nataraj", "subject": "deck"}},
            {"at": 20, "foreground": None},
        ]
    )
    preempt = of(trace, "preempt")[0]
    assert (preempt["t"], preempt["job"], preempt["by"]) == (9.0, "g1", "n1")
    hoisted = of(trace, "dispatch", "n1")[0]
    assert hoisted["tier"] == 1
    assert not [line for line in of(trace, "dispatch") if 9.1 < line["t"] < 20]
    assert of(trace, "dispatch", "g1")[1]["resumed"] is True
    assert 20 <= of(trace, "dispatch", "g1")[1]["t"] <= hoisted["t"] + 30 + TOKEN_S + 1e-3


def test_scenario_5_a_backfill_gets_sixty_per_cent_and_the_fair_pool_the_rest() -> None:
    backfill = [submit(n, f"e{n}", "extract", f"note{n}", 100, 40) for n in range(500)]
    deck = [submit(0, "n1", "nataraj", "deck", 100, 14_000)]
    trace = play(deck + backfill, until=900)
    shares = of(trace, "share")
    assert [line["exhausted"] for line in shares[:4]] == [True, False, True, False]
    device: dict[str, float] = {"extract": 0.0, "nataraj": 0.0}
    runs = [line for line in trace if line["event"] in ("dispatch", "stopped", "finish")]
    for start, end in pairwise(runs):
        if start["event"] == "dispatch" and start["t"] >= 300:
            device[start["kind"]] += end["t"] - start["t"]
    assert 0.55 <= device["extract"] / sum(device.values()) <= 0.61


def test_scenario_6_the_local_gana_first_and_the_foreign_one_after_linger() -> None:
    trace = play(
        [
            submit(0, "c1", "chat", "conv", 50, 40),
            submit(1, "gy", "gana", "y", 50, 40, model="Y"),
            submit(1, "gx", "gana", "x", 50, 40),
        ],
        models="XY",
    )
    ended = only(trace, "finish", "c1")["t"]
    assert only(trace, "dispatch", "gx")["t"] == ended
    assert only(trace, "swap_start")["t"] == pytest.approx(ended + 20.0)  # 2·c, c = 10 s unmeasured
    assert only(trace, "swap_start")["trigger"] == "gy"
    looked_at = play(
        [
            submit(0, "c1", "chat", "conv", 50, 40),
            submit(1, "gy", "gana", "y", 50, 40, model="Y"),
            {"at": 5, "foreground": {"kind": "gana", "subject": "y"}},
        ],
        models="XY",
    )
    assert only(looked_at, "swap_start")["t"] == 5.0


def test_scenario_6_while_the_chat_is_the_surface_its_model_stays_300_s() -> None:
    trace = play(
        [
            {"at": 0, "foreground": {"kind": "chat", "subject": "conv"}},
            submit(0, "c1", "chat", "conv", 50, 40),
            submit(1, "gy", "gana", "y", 50, 40, model="Y"),
        ],
        models="XY",
    )
    assert only(trace, "swap_start")["t"] == pytest.approx(only(trace, "finish", "c1")["t"] + 300.0)


def test_scenario_7_an_opened_notes_extract_is_hoisted_over_a_running_deck_past_its_share() -> None:
    trace = play(
        [
            {"at": 0, "foreground": {"kind": "nataraj", "subject": "deck"}},
            submit(0, "n1", "nataraj", "deck", 100, 1000),
            {"at": 10, "foreground": {"kind": "extract", "subject": "note"}},
            submit(10, "e1", "extract", "note", 200, 40, foreground_hint=True),
            submit(10, "e2", "extract", "another", 200, 40),
        ]
    )
    assert [(line["by"], line["t"]) for line in of(trace, "preempt", "n1")] == [("e1", 10.0)]
    assert only(trace, "dispatch", "e1")["tier"] == 1
    assert only(trace, "dispatch", "e2")["tier"] == 2


def test_scenario_8_without_jobs_the_scheduler_is_dormant() -> None:
    """The tick of the background process is no job of this scheduler: with the app closed nothing is queued, and what
    is tested is that then nothing is dispatched, nothing is loaded and no timer is set."""
    load = Scenario.model_validate(
        {
            "models": {"X": MODEL, "Y": MODEL},
            "loaded": "X",
            "events": [submit(0, "n1", "nataraj", "deck", 100, 20), {"at": 5, "foreground": None}],
            "until": 10_000,
        }
    )
    timers = []
    simulation = Simulation(load, on_step=lambda scheduler: timers.append(scheduler.wake_at))
    simulation.run()
    assert timers[-1] is None
    assert [line["event"] for line in simulation.trace if line["t"] > 2] == ["foreground", "summary"]
    assert simulation.trace[-1]["idle_s"] == pytest.approx(10_000 - 0.2 - 20 * TOKEN_S)


# -- found by the judge


def test_a_job_served_first_after_its_swap_gives_way_to_better_tiers_at_its_first_boundary() -> None:
    trace = play(
        [
            submit(0, "n1", "nataraj", "deck", 100, 1000, model="Y"),
            submit(3, "e1", "extract", "note", 100, 40, model="Y"),
        ],
        models="XY",
    )
    assert only(trace, "swap_start")["trigger"] == "n1"
    assert of(trace, "dispatch")[0]["job"] == "n1"
    assert [line["by"] for line in of(trace, "preempt", "n1")] == ["e1"]
    assert only(trace, "dispatch", "e1")["t"] <= 10.0 + CHUNK_S


def test_a_foreign_model_takes_over_at_q_though_costs_differ_by_a_rounding_error() -> None:
    events = [submit(0, "g0", "gana", "a", 100, 8000)]
    events += [submit(1 + n, f"g{n + 1}", "gana", "b", 50, 600, model=m) for n, m in enumerate("YZYZYZ")]
    trace = play(events, models="XYZ")
    starts = [line["t"] for line in of(trace, "swap_start")]
    assert len(starts) > 2
    assert starts[0] == pytest.approx(90.0, abs=0.1)


def test_two_models_with_long_prompts_and_short_swaps_both_get_done() -> None:
    models = {name: {"load_s": 0.01, "prefill_tps": 500, "decode_tps": 20} for name in "XY"}
    load = Scenario.model_validate(
        {
            "models": models,
            "loaded": "X",
            "until": 600,
            "events": [
                submit(0, "a", "nataraj", "f", 2000, 10),
                submit(0, "b", "gana", "f", 2000, 10, model="Y"),
                submit(0, "c1", "chat", "f", 1, 1, model="Y"),
            ],
        }
    )
    trace = simulate_checked(load).trace
    assert {line["job"] for line in of(trace, "finish")} == {"a", "b", "c1"}


def test_the_device_stays_busy_for_the_caller_that_is_left() -> None:
    trace = play(
        [
            submit(0, "a", "gana", "f", 100, 5),
            submit(0, "b", "extract", "f", 100, 100, coalesce_key="k"),
            submit(0, "c", "extract", "g", 100, 100, coalesce_key="k"),
            {"at": 2, "cancel": "b"},
        ]
    )
    assert only(trace, "finish", "c")["flow"] == "g"
    assert trace[-1]["idle_s"] == 0.0


# -- what the user and the callers do


def test_a_forced_switch_stops_even_a_chat_and_says_so_a_gentle_one_waits() -> None:
    def switch(*, force: bool) -> Trace:
        event = {"at": 3, "switch_model": {"model": "Y", "force": force}}
        return play([submit(0, "c1", "chat", "conv", 50, 100), event], models="XY")

    forced = switch(force=True)
    assert "switch" in only(forced, "failed", "c1")["error"]
    assert only(forced, "swap_start")["t"] == pytest.approx(3.0, abs=TOKEN_S)
    gentle = switch(force=False)
    assert not of(gentle, "preempt")
    assert only(gentle, "swap_start")["t"] == only(gentle, "finish", "c1")["t"]
    assert only(gentle, "swap_start")["trigger"] == "model_switch"


def test_a_forced_switch_to_the_resident_model_stops_nothing() -> None:
    event = {"at": 3, "switch_model": {"model": "X", "force": True}}
    trace = play([submit(0, "c1", "chat", "conv", 50, 100), event])
    assert [line["event"] for line in trace] == ["submit", "dispatch", "first_token", "finish", "summary"]


def test_a_cancelled_run_is_not_put_back_and_a_cancelled_waiter_disturbs_nobody() -> None:
    trace = play(
        [
            submit(0, "n1", "nataraj", "deck", 50, 100),
            submit(0, "n2", "nataraj", "deck", 50, 10),
            submit(0, "n3", "nataraj", "deck", 50, 10),
            {"at": 1, "cancel": "n2"},
            {"at": 2, "cancel": "n1"},
        ]
    )
    assert (only(trace, "cancelled", "n2")["t"], of(trace, "dispatch", "n2")) == (1.0, [])
    assert len(of(trace, "dispatch", "n1")) == 1
    assert 2.0 <= only(trace, "cancelled", "n1")["t"] <= 2.0 + TOKEN_S
    assert not of(trace, "preempt")


def test_a_burst_for_one_absent_model_loads_it_once_and_a_chat_lends_its_tier() -> None:
    burst = [submit(0, f"g{n}", "gana", f"f{n}", 50, 20, model="Y") for n in range(20)]
    assert len(of(play(burst, models="XY"), "swap_start")) == 1
    lent = play(
        [
            submit(0, "n1", "nataraj", "deck", 50, 100),
            submit(1, "e1", "gana", "other", 50, 20),
            submit(2, "c1", "chat", "conv", 50, 20, waits_for="e1"),
        ]
    )
    assert [(line["t"], line["by"]) for line in of(lent, "preempt")] == [(2.0, "e1")]
    assert only(lent, "dispatch", "e1")["tier"] == 0


def test_two_with_one_key_run_once_and_both_finish() -> None:
    trace = play(
        [
            submit(0, "n1", "nataraj", "deck", 50, 100),
            submit(1, "g1", "gana", "f", 50, 20, coalesce_key="k"),
            submit(2, "g2", "gana", "f", 50, 20, coalesce_key="k"),
        ]
    )
    assert len(of(trace, "dispatch")) == 2
    assert only(trace, "finish", "g1")["t"] == only(trace, "finish", "g2")["t"]


# -- long runs


@pytest.mark.parametrize(("slice_s", "period_s"), [(30, 300), (0, 1e8), (5, 300), (0, 300)])
def test_two_backlogged_flows_share_evenly_at_every_moment(slice_s: float, period_s: float) -> None:
    hours = 10 if slice_s >= 30 else 0.1
    tokens = int(hours * 3600 * 20)
    trace = play(
        [submit(0, name, "gana", name, 100, tokens) for name in ("a", "b")],
        config={"fair_slice_s": slice_s, "halving_period_s": period_s},
        until=hours * 3600,
    )
    flows = trace[-1]["flows"]
    assert abs(flows["gana/a"] - flows["gana/b"]) <= 2 * (slice_s + CHUNK_S)
    assert trace[-1]["idle_s"] == 0.0
