"""What a trace amounts to: waits, first tokens and service per kind, service per flow, and the device's time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

QUANTILES = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))


def quantiles(values: Sequence[float]) -> dict[str, float | None]:
    """Nearest-rank quantiles; all none without values."""
    ordered = sorted(values)
    if not ordered:
        return {name: None for name, _ in QUANTILES}
    return {name: round(ordered[max(0, math.ceil(q * len(ordered)) - 1)], 6) for name, q in QUANTILES}


def summarise(trace: Iterable[Mapping[str, Any]], end: float) -> dict[str, Any]:
    """The last record of a trace. Times in seconds; `end` is when it was cut off."""
    submitted: dict[str, tuple[str, float]] = {}
    sharers: dict[str, set[str]] = {}
    """By each caller's id: all that still wait for the same work."""
    waits: dict[str, list[float]] = {}
    firsts: dict[str, list[float]] = {}
    counts: dict[str, dict[str, int]] = {}
    kind_service: dict[str, float] = {}
    flow_service: dict[str, float] = {}
    dispatched: set[str] = set()
    on_device: dict[str, tuple[Mapping[str, Any], float]] = {}
    """By the name that the dispatch told."""
    busy_since = 0.0
    swap_started: float | None = None
    swaps = preemptions = 0
    swap_s = busy_s = 0.0

    def vacate(job: str, at: float) -> None:
        nonlocal busy_s
        record, since = on_device.pop(job)
        if not on_device:
            busy_s += at - busy_since
        flow = f"{record['kind']}/{record['flow']}"
        kind_service[record["kind"]] = kind_service.get(record["kind"], 0.0) + at - since
        flow_service[flow] = flow_service.get(flow, 0.0) + at - since

    for record in trace:
        event, at = record["event"], record["t"]
        if event in ("submit", "rejected"):
            submitted[record["job"]] = (record["kind"], at)
            count = counts.setdefault(record["kind"], {})
            count["submitted"] = count.get("submitted", 0) + 1
            sharers[record["job"]] = sharers.get(record.get("joined", ""), set())
            sharers[record["job"]].add(record["job"])
        if event == "dispatch":
            if not on_device:
                busy_since = at
            on_device[record["job"]] = (record, at)
            for caller in sorted(sharers[record["job"]], key=lambda caller: submitted[caller][1]):
                if caller not in dispatched:
                    dispatched.add(caller)
                    waits.setdefault(record["kind"], []).append(at - submitted[caller][1])
        elif event == "first_token":
            firsts.setdefault(record["kind"], []).append(at - submitted[record["job"]][1])
        elif event == "preempt":
            preemptions += 1
        elif event == "swap_start":
            swap_started = at
        elif event == "swap_end":
            swaps += 1
            swap_s += at - (swap_started or 0.0)
            swap_started = None
        if event in ("finish", "cancelled", "failed", "rejected"):
            count = counts.setdefault(record["kind"], {})
            count[event] = count.get(event, 0) + 1
            sharers[record["job"]].discard(record["job"])
        for job in [job for job in on_device if _left(record, job, sharers)]:
            vacate(job, at)
    for job in list(on_device):
        vacate(job, end)
    if swap_started is not None:
        swap_s += end - swap_started
    kinds = {
        kind: {
            "count": count["submitted"],
            "finished": count.get("finish", 0),
            "cancelled": count.get("cancelled", 0),
            "failed": count.get("failed", 0),
            "rejected": count.get("rejected", 0),
            "wait_s": quantiles(waits.get(kind, [])),
            "first_token_s": quantiles(firsts.get(kind, [])),
            "service_s": round(kind_service.get(kind, 0.0), 6),
        }
        for kind, count in sorted(counts.items())
    }
    return {
        "t": round(end, 6),
        "event": "summary",
        "kinds": kinds,
        "flows": {flow: round(seconds, 6) for flow, seconds in sorted(flow_service.items())},
        "swaps": swaps,
        "swap_s": round(swap_s, 6),
        "preemptions": preemptions,
        "busy_s": round(busy_s, 6),
        "idle_s": round(max(0.0, end - busy_s - swap_s), 6),
    }


def _left(record: Mapping[str, Any], job: str, sharers: Mapping[str, set[str]]) -> bool:
    """Whether the record takes the job off the device: it was stopped, in whosever name, or nobody waits for it."""
    stopped = record["event"] == "stopped" and (record["job"] == job or record["job"] in sharers[job])
    return stopped or not sharers[job]
