"""What section 8 of docs/scheduler.md promises over stretches of a run, asked of a replayed trace."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

from data.scheduling.scenario import Scenario
from domain.entities.llm import LlmTaskKind
from tests.data.scheduling.trace_checker import POOL, Life, Line, TraceChecker, Violation, check_trace

Interval = tuple[float, float]
EPSILON = 1e-3


def judge(scenario: Scenario, trace: Sequence[Line]) -> TraceChecker:
    """The whole contract: every record, and every stretch. Raises `Violation`."""
    run = check_trace(scenario, trace)
    check_whole(run)
    return run


def check_whole(run: TraceChecker) -> None:
    """Raises `Violation`."""
    check_fairness(run)
    check_extract_windows(run)
    check_swap_bound(run)
    check_summary(run)


def _delta(scenario: Scenario) -> float:
    chunk = scenario.config.prefill_chunk_tokens
    return max(max(chunk / m.prefill_tps, 1 / m.decode_tps) for m in scenario.models.values())


def _union(spans: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _both(first: list[Interval], second: list[Interval]) -> list[Interval]:
    pairs = [(max(a, c), min(b, d)) for a, b in first for c, d in second]
    return [(start, end) for start, end in pairs if start < end]


def check_fairness(run: TraceChecker) -> None:
    """Invariant 7: flows of one kind, and kinds, that are backlogged throughout, only ever ranked T4, on one model.

    Over any part of such a stretch the difference in weighted service stays within 2 × (slice + boundary).
    """
    scenario, end = run.scenario, run.trace[-1]["t"]
    bound = 2 * (scenario.config.fair_slice_s + _delta(scenario)) + EPSILON
    if any(event.switch_model is not None for event in scenario.events):
        return
    for level in ("flow", "kind"):
        groups: dict[Any, list[Life]] = defaultdict(list)
        for job in run.all:
            if job.spec.kind in POOL:
                groups[job.flow if level == "flow" else job.spec.kind].append(job)
        sound = {key: jobs for key, jobs in groups.items() if _only_fair(run, jobs)}
        for one, two in combinations(sorted(sound), 2):
            if level == "flow" and one[0] is not two[0]:
                continue
            if len({job.spec.model for job in sound[one] + sound[two]}) > 1:
                continue
            weights = [_weight(run, key, sound[key], level) for key in (one, two)]
            live = [
                _union([(job.submitted_at, job.ended_at or end) for job in sound[key]]) for key in (one, two)
            ]
            runs = [[r for job in sound[key] for r in job.runs] for key in (one, two)]
            for start, stop in _both(*live):
                gap = _spread(runs, weights, start, stop)
                if gap > bound / min(*weights, 1.0):
                    raise Violation(
                        f"{scenario.name}: {one} and {two} drift {gap} s apart in {start}..{stop}, bound {bound}"
                    )


def _only_fair(run: TraceChecker, jobs: list[Life]) -> bool:
    """Nothing but T4 ever, and no swap on its account."""
    ids = {job.spec.id for job in jobs}
    return (
        all(tier == 4 for job in jobs for _, _, tier in job.runs)
        and not any(
            job.spec.deadline is not None or job.spec.foreground_hint or job.spec.waits_for for job in jobs
        )
        and not any(job.spec.coalesce_key or _waited_for(run, job) for job in jobs)
        and not any(trigger in ids for *_, trigger in run.swaps)
        and len({job.spec.weight for job in jobs}) == 1
    )


def _waited_for(run: TraceChecker, job: Life) -> bool:
    return any(other.spec.waits_for == job.spec.id for other in run.all)


def _weight(run: TraceChecker, key: Any, jobs: list[Life], level: str) -> float:
    config = run.scenario.config
    if level == "kind":
        return config.kind_weights.get(key, 1.0)
    return config.flow_weights.get(f"{key[0].value}/{key[1]}", jobs[0].spec.weight)


def _spread(
    runs: list[list[tuple[float, float, int]]], weights: list[float], start: float, stop: float
) -> float:
    """How far apart the weighted services move, over any part of the stretch."""
    moves = [
        (max(begin, start), sign * (min(end, stop) - max(begin, start)) / weight)
        for sign, weight, ran in ((1, weights[0], runs[0]), (-1, weights[1], runs[1]))
        for begin, end, _ in ran
        if begin < stop and end > start
    ]
    lead = low = high = 0.0
    for _, move in sorted(moves):
        lead += move
        low, high = min(low, lead), max(high, lead)
    return high - low


def check_extract_windows(run: TraceChecker) -> None:
    """Invariant 6: 60 % of any window while a T3 or T4 job that could run at once is there throughout."""
    config, end = run.config, run.trace[-1]["t"]
    if len(run.scenario.models) > 1 and len({job.spec.model for job in run.all}) > 1:
        return
    extracts = [job for job in run.all if job.spec.kind is LlmTaskKind.EXTRACT]
    if any(tier < 2 for job in extracts for _, _, tier in job.runs):
        return
    rivals = _union([(j.submitted_at, j.ended_at or end) for j in run.all if j.spec.kind in POOL])
    span = config.share_window_s
    delta = _delta(run.scenario)
    for start, stop in rivals:
        moments = [e for job in extracts for _, e, _ in job.runs if start + span <= e <= stop] + [stop]
        for moment in moments:
            if moment - span < start:
                continue
            busy = used = 0.0
            for job in run.all:
                for begin, finish, _ in job.runs:
                    seconds = max(0.0, min(finish, moment) - max(begin, moment - span))
                    busy += seconds
                    used += seconds * (job.spec.kind is LlmTaskKind.EXTRACT)
            if used > config.extract_share * max(config.share_min_busy_s, busy) + delta + 0.05:
                raise Violation(f"{run.scenario.name}: extract had {used} of {busy} s up to {moment}")


def check_swap_bound(run: TraceChecker) -> None:
    """Invariant 8, where only the fair pool is there: wait to first service ≤ (M−1)(Q+δ+c)+c."""
    scenario, config = run.scenario, run.config
    plain = all(
        event.submit is not None
        and event.submit.kind in POOL
        and event.submit.deadline is None
        and not event.submit.foreground_hint
        and event.submit.waits_for is None
        for event in scenario.events
    )
    if not plain or not run.all:
        return
    models = {job.spec.model for job in run.all} | ({scenario.loaded} if scenario.loaded else set())
    c = max([config.default_swap_cost_s, *(scenario.models[m].load_s for m in models)])
    q = c * (1 - config.swap_fraction) / config.swap_fraction
    bound = (len(models) - 1) * (q + _delta(scenario) + c) + c + 0.1
    end = run.trace[-1]["t"]
    for model in models:
        jobs = [job for job in run.all if job.spec.model == model]
        serving = _union([(a, b) for job in jobs for a, b, _ in job.runs])
        for start, stop in _union([(job.submitted_at, job.ended_at or end) for job in jobs]):
            inside = [(a, b) for a, b in serving if b > start and a < stop]
            edges = [start, *(x for span in inside for x in span), stop]
            longest = max(edges[i + 1] - edges[i] for i in range(0, len(edges), 2))
            if longest > bound:
                raise Violation(f"{scenario.name}: {model} waits {longest} s from {start}, bound {bound}")


def check_summary(run: TraceChecker) -> None:
    """Section 11: the figures, computed again from the replay."""
    told = run.trace[-1]
    end = told["t"]
    service: dict[Hashable, float] = defaultdict(float)
    flows = run.flow_service
    for job in run.all:
        for start, stop, _ in job.runs:
            service[job.spec.kind.value] += stop - start
    busy = sum(service.values())
    lines = run.trace[:-1]
    counts = {kind: sum(1 for li in lines if li["event"] == kind) for kind in ("swap_end", "preempt")}
    swap_s = sum(stop - start for start, stop, *_ in run.swaps)
    if run.loading is not None:
        swap_s += end - run.loading[1]
    _same(run, "swaps", told["swaps"], counts["swap_end"])
    _same(run, "preemptions", told["preemptions"], counts["preempt"])
    _near(run, "swap_s", told["swap_s"], swap_s)
    _near(run, "busy_s", told["busy_s"], busy)
    _near(run, "idle_s", told["idle_s"], max(0.0, end - busy - swap_s))
    for flow, seconds in flows.items():
        if seconds or flow in told["flows"]:
            _near(run, flow, told["flows"].get(flow, 0.0), seconds)
    kinds = {line["kind"] for line in lines if line["event"] in ("submit", "rejected")}
    _same(run, "kinds", set(told["kinds"]), kinds)
    for kind in kinds:
        _check_kind(run, kind, told["kinds"][kind], service[kind])


def _check_kind(run: TraceChecker, kind: str, told: Mapping[str, Any], service: float) -> None:
    mine = [line for line in run.trace[:-1] if line.get("kind") == kind and "job" in line]
    for name, event in (
        ("finished", "finish"),
        ("cancelled", "cancelled"),
        ("failed", "failed"),
        ("rejected", "rejected"),
    ):
        _same(run, f"{kind} {name}", told[name], sum(1 for line in mine if line["event"] == event))
    arrived = {line["job"]: line["t"] for line in mine if line["event"] in ("submit", "rejected")}
    _same(run, f"{kind} count", told["count"], len(arrived))
    _near(run, f"{kind} service", told["service_s"], service)
    firsts = [line["t"] - arrived[line["job"]] for line in mine if line["event"] == "first_token"]
    _quantiles(run, f"{kind} first token", told["first_token_s"], firsts)
    if not any("joined" in line for line in mine):
        started: dict[str, float] = {}
        for line in mine:
            if line["event"] == "dispatch":
                started.setdefault(line["job"], line["t"])
        waits = [at - arrived[job] for job, at in started.items()]
        _quantiles(run, f"{kind} wait", told["wait_s"], waits)


def _quantiles(
    run: TraceChecker, what: str, told: Mapping[str, float | None], values: Sequence[float]
) -> None:
    ordered = sorted(values)
    for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        if not ordered:
            _same(run, what, told[name], None)
            continue
        value = told[name]
        rank = q * len(ordered)
        low, high = ordered[max(0, math.floor(rank) - 1)], ordered[min(len(ordered) - 1, math.ceil(rank))]
        if value is None or not low - EPSILON <= value <= high + EPSILON:
            raise Violation(f"{run.scenario.name}: {what} {name} is {value}, expected {low}..{high}")


def _same(run: TraceChecker, what: str, told: Any, value: Any) -> None:
    if told != value:
        raise Violation(f"{run.scenario.name}: summary: {what} is {told}, expected {value}")


def _near(run: TraceChecker, what: str, told: float, value: float) -> None:
    if abs(told - value) > EPSILON:
        raise Violation(f"{run.scenario.name}: summary: {what} is {told}, expected {value}")
