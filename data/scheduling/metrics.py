"""Counters of what the scheduler did, kept from its trace."""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate

from data.scheduling.events import Record
from data.scheduling.inspection import Gauges
from data.scheduling.sharers import Sharers
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import Histogram, KindMetrics, QueueMetrics, SchedulerMetrics

BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
ENDS = ("finish", "cancelled", "failed", "rejected")


@dataclass(slots=True)
class Tally:
    """A histogram that grows."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def view(self) -> Histogram:
        *below, count = accumulate(self.buckets)
        return Histogram(bounds_s=BOUNDS_S, counts=tuple(below), count=count, sum_s=self.sum_s)


@dataclass(slots=True)
class Line:
    """What is counted of one kind in one tier."""

    wait: Tally = field(default_factory=Tally)
    first_token: Tally = field(default_factory=Tally)
    preemptions: int = 0


class MetricsCollector:
    """Give it every trace record, and the tokens as they come."""

    def __init__(self) -> None:
        self._sharers = Sharers()
        self._submitted_at: dict[str, float] = {}
        self._waiting: set[str] = set()
        """Callers whose job has not run yet."""
        self._lines: dict[tuple[LlmTaskKind, int], Line] = {}
        self._counts: dict[LlmTaskKind, dict[str, int]] = {}
        self._service: dict[LlmTaskKind, float] = {}
        self._runs: dict[str, tuple[LlmTaskKind, float]] = {}
        """Who is on the device, by the name that the dispatch told, and since when."""
        self._told_to_stop: dict[str, int] = {}
        self._swaps = self._swaps_failed = self._preemptions = 0
        self._swap_s = 0.0

    def produced(self, kind: LlmTaskKind, tokens: int) -> None:
        """So many tokens more."""
        self._count(kind, "tokens", tokens)

    def note(self, record: Record) -> None:
        """Takes one record; they come in order."""
        t, event, fields = record.t, record.event, record.fields
        if event == "swap_end":
            self._swaps += 1
            self._swaps_failed += not fields["ok"]
            self._swap_s += fields["seconds"]
        if "job" not in fields:
            return
        job, kind, tier = fields["job"], fields["kind"], fields["tier"]
        match event:
            case "submit":
                self._sharers.enter(job, fields.get("joined"))
                self._submitted_at[job] = t
                self._waiting.add(job)
                self._count(kind, "submit")
            case "dispatch":
                self._runs[job] = (kind, t)
                for caller in self._waiting.intersection(self._sharers.of(job)):
                    self._waiting.discard(caller)
                    self._line(kind, tier).wait.add(t - self._submitted_at[caller])
            case "first_token":
                self._line(kind, tier).first_token.add(t - self._submitted_at.get(job, t))
            case "preempt":
                self._told_to_stop[job] = tier
            case "stopped":
                self._leave_device(job, t)
                if (was := self._told_to_stop.pop(job, None)) is not None:
                    self._preemptions += 1
                    self._line(kind, was).preemptions += 1
        if event in ENDS:
            self._count(kind, event)
            self._end(job, t)

    def view(self, gauges: Gauges) -> SchedulerMetrics:
        """All of it, with what the scheduler says of this moment."""
        seen = sorted(self._lines.keys() | gauges.queued.keys())
        return SchedulerMetrics(
            queues=tuple(
                QueueMetrics(
                    kind=kind,
                    tier=tier,
                    queued=gauges.queued.get((kind, tier), 0),
                    wait=(line := self._line(kind, tier)).wait.view(),
                    first_token=line.first_token.view(),
                    preemptions=line.preemptions,
                )
                for kind, tier in seen
            ),
            kinds=tuple(
                KindMetrics(
                    kind=kind,
                    submitted=counts.get("submit", 0) + counts.get("rejected", 0),
                    finished=counts.get("finish", 0),
                    cancelled=counts.get("cancelled", 0),
                    failed=counts.get("failed", 0),
                    rejected=counts.get("rejected", 0),
                    tokens=counts.get("tokens", 0),
                    service_s=self._service.get(kind, 0.0),
                )
                for kind, counts in sorted(self._counts.items())
            ),
            running=gauges.running,
            swaps=self._swaps,
            swap_s=self._swap_s,
            swaps_failed=self._swaps_failed,
            preemptions=self._preemptions,
            extract_share=gauges.extract_share,
            extract_share_limit=gauges.extract_share_limit,
            extract_exhausted=gauges.extract_exhausted,
            engine_restarts=gauges.engine_restarts,
        )

    def _end(self, name: str, t: float) -> None:
        self._submitted_at.pop(name, None)
        self._waiting.discard(name)
        heir = self._sharers.leave(name)
        if heir is None:
            self._leave_device(name, t)
            self._told_to_stop.pop(name, None)
            return
        if name in self._runs:
            self._runs[heir] = self._runs.pop(name)
        if name in self._told_to_stop:
            self._told_to_stop[heir] = self._told_to_stop.pop(name)

    def _leave_device(self, name: str, t: float) -> None:
        if (run := self._runs.pop(name, None)) is not None:
            self._service[run[0]] = self._service.get(run[0], 0.0) + t - run[1]

    def _line(self, kind: LlmTaskKind, tier: int) -> Line:
        return self._lines.setdefault((kind, tier), Line())

    def _count(self, kind: LlmTaskKind, what: str, by: int = 1) -> None:
        counts = self._counts.setdefault(kind, {})
        counts[what] = counts.get(what, 0) + by
