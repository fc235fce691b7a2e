"""A model that runs several jobs at once: slots are filled, tiers hold, and nobody is disturbed without need."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from data.scheduling.scenario import Scenario
from data.scheduling.simulation import simulate_checked

Trace = list[dict[str, Any]]

KINDS = ("chat", "extract", "nataraj", "gana", "api")


def play(parallel: int, jobs: list[tuple[float, str, str, str, int]], **more: Any) -> Trace:
    """`jobs`: when, id, kind, flow, tokens; 20 tokens a second each, and a prompt of one token."""
    speed = {"load_s": 5, "prefill_tps": 1000, "decode_tps": 20, "parallel": parallel}
    events = [
        {
            "at": at,
            "submit": {
                "id": job,
                "kind": kind,
                "flow": flow,
                "model": "X",
                "prompt_tokens": 1,
                "output_tokens": n,
            },
        }
        for at, job, kind, flow, n in jobs
    ]
    data = {"models": {"X": speed, "Y": {**speed, "parallel": 1}}, "loaded": "X", "events": events, **more}
    return simulate_checked(Scenario.model_validate(data)).trace


def at_once(trace: Trace) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """Every record with who is on the device after it."""
    on: set[str] = set()
    for line in trace[:-1]:
        if line["event"] == "dispatch":
            on.add(line["job"])
        elif line["event"] in ("stopped", "finish", "cancelled", "failed"):
            on.discard(line["job"])
        yield line, set(on)


def when(trace: Trace, event: str, job: str) -> float:
    return next(float(line["t"]) for line in trace if line["event"] == event and line["job"] == job)


def test_as_many_run_as_there_are_slots() -> None:
    trace = play(3, [(0, f"g{n}", "gana", f"f{n}", 100) for n in range(7)])
    assert max(len(on) for _, on in at_once(trace)) == 3
    summary = trace[-1]
    assert summary["busy_s"] == pytest.approx(15.0, abs=0.1), "seven jobs of 5 s on three slots"
    assert summary["kinds"]["gana"]["service_s"] == pytest.approx(35.0, abs=0.1)
    assert summary["preemptions"] == 0


def test_a_chat_stops_one_job_only_and_only_when_no_slot_is_free() -> None:
    jobs = [(0.0, "g1", "gana", "a", 400), (1.0, "c1", "chat", "c", 20), (1.1, "c2", "chat", "d", 20)]
    trace = play(2, jobs)
    stopped = [line["job"] for line in trace if line["event"] == "stopped"]
    assert when(trace, "dispatch", "c1") == 1.0
    assert stopped == ["g1"], "the second chat needed its slot"
    assert when(trace, "dispatch", "c2") < 1.2
    assert when(trace, "finish", "g1") > when(trace, "finish", "c1")


def test_the_worst_tier_gives_way_first() -> None:
    jobs = [(0.0, "e", "extract", "n", 400), (0.0, "g", "gana", "a", 400), (2.0, "c", "chat", "c", 20)]
    trace = play(2, jobs)
    assert [line["job"] for line in trace if line["event"] == "stopped"] == ["g"]


def test_flows_share_the_slots() -> None:
    """Ten jobs of one flow came first; the other flow gets half of the device all the same."""
    jobs = [(0.0, f"a{n}", "gana", "a", 2000) for n in range(10)] + [
        (1.0, f"b{n}", "gana", "b", 2000) for n in range(10)
    ]
    trace = play(2, jobs, until=600)
    flows = trace[-1]["flows"]
    # Each slot errs by a slice and a boundary at most.
    assert abs(flows["gana/a"] - flows["gana/b"]) <= 2 * 2 * (30 + 0.2)


def test_another_model_waits_for_all_slots_and_gets_the_device_alone() -> None:
    jobs = [(0.0, f"g{n}", "gana", f"f{n}", 200) for n in range(4)]
    chat = {
        "at": 2.0,
        "submit": {
            "id": "c",
            "kind": "chat",
            "flow": "c",
            "model": "Y",
            "prompt_tokens": 1,
            "output_tokens": 20,
        },
    }
    speed = {"load_s": 5, "prefill_tps": 1000, "decode_tps": 20}
    data = {
        "models": {"X": {**speed, "parallel": 4}, "Y": speed},
        "loaded": "X",
        "events": [
            {
                "at": at,
                "submit": {
                    "id": i,
                    "kind": k,
                    "flow": f,
                    "model": "X",
                    "prompt_tokens": 1,
                    "output_tokens": n,
                },
            }
            for at, i, k, f, n in jobs
        ]
        + [chat],
    }
    trace = simulate_checked(Scenario.model_validate(data)).trace
    for line, on in at_once(trace):
        if line["event"] == "swap_start" and line["to"] == "Y":
            assert on == set()
            assert line["t"] == pytest.approx(2.0, abs=0.1)
    assert len([line for line in trace if line["event"] == "stopped"]) == 4
    assert len([line for line in trace if line["event"] == "finish"]) == 5


def test_extract_keeps_to_its_share_of_all_slots() -> None:
    jobs = [(0.0, f"e{n}", "extract", f"n{n}", 100) for n in range(400)] + [
        (0.0, f"g{n}", "gana", "g", 100) for n in range(400)
    ]
    kinds = play(4, jobs, until=600)[-1]["kinds"]
    share = kinds["extract"]["service_s"] / (kinds["extract"]["service_s"] + kinds["gana"]["service_s"])
    assert share == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parallel", [1, 2, 5])
def test_random_loads(seed: int, parallel: int) -> None:
    """`check` after every event; tiers, slots, ends and repeatability here."""
    rng = random.Random(seed)
    jobs = sorted(
        (rng.uniform(0, 200), f"j{n}", rng.choice(KINDS), rng.choice("abc"), rng.randrange(1, 400))
        for n in range(60)
    )
    trace = play(parallel, jobs)
    assert trace == play(parallel, jobs)
    tokens: dict[str, int] = {}
    for line, on in at_once(trace):
        assert len(on) <= parallel
        if line["event"] == "stopped":
            assert line["tokens_done"] >= tokens.get(line["job"], 0)
            tokens[line["job"]] = line["tokens_done"]
    finished = [line["job"] for line in trace if line["event"] == "finish"]
    assert sorted(finished) == sorted(job for _, job, _, _, _ in jobs)
    # A chat with a slot, or with a lesser job to give way, starts within a boundary.
    chats = {job for _, job, kind, _, _ in jobs if kind == "chat"}
    for at, job, kind, _, _ in jobs:
        if kind == "chat":
            on = next(on for line, on in at_once(trace) if line["event"] == "submit" and line["job"] == job)
            if len((on & chats) - {job}) < parallel and not _chats_wait(trace, chats, at, job):
                assert when(trace, "dispatch", job) - at < 0.3


def _chats_wait(trace: Trace, chats: set[str], at: float, job: str) -> bool:
    """Whether another chat was waiting at that moment."""
    return any(when(trace, "submit", other) <= at < when(trace, "dispatch", other) for other in chats - {job})
