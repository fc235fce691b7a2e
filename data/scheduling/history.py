"""The last minutes of the scheduler's trace, within limits; who follows it live; and its counters."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

from data.clock import Clock
from data.scheduling.events import Record
from data.scheduling.inspection import Gauges
from data.scheduling.metrics import ENDS, MetricsCollector
from data.scheduling.spans import SpanKeeper
from data.scheduling.summary import summarise
from data.scheduling.trace_lines import plain_record
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import (
    History,
    MissedRecords,
    SchedulerChange,
    SchedulerMetrics,
    TraceRecord,
)
from domain.errors import TooManyWatchers

WINDOW_S = 600.0
MOST_RECORDS = 20_000
MOST_SPANS = 5_000
WATCH_BUFFER = 1_000
"""Records kept for a reader that is behind."""
MOST_WATCHERS = 100


class TraceSource(Protocol):
    """The dispatcher, as far as a history is concerned."""

    def observe(self, listener: Callable[[Record], None]) -> None: ...

    def observe_tokens(self, listener: Callable[[LlmTaskKind, int], None]) -> None: ...

    def gauges(self) -> Gauges: ...


class Watcher:
    """One reader's records that it has not read yet."""

    def __init__(self, most: int) -> None:
        self.waiting: deque[TraceRecord] = deque()
        self.missed = 0
        self.news = asyncio.Event()
        self._most = most

    def put(self, record: TraceRecord) -> None:
        if len(self.waiting) >= self._most:
            self.waiting.popleft()
            self.missed += 1
        self.waiting.append(record)
        self.news.set()


class TraceHistory:
    """Implements `SchedulerHistory`. Lives on the dispatcher's event loop, from before its first job."""

    def __init__(
        self,
        source: TraceSource,
        clock: Clock,
        *,
        window_s: float = WINDOW_S,
        most: int = MOST_RECORDS,
        watch_buffer: int = WATCH_BUFFER,
    ) -> None:
        self._source = source
        self._clock = clock
        self._window_s, self._most, self._watch_buffer = window_s, most, watch_buffer
        self._began = clock.monotonic()
        self._last = self._began
        self._serial = 0
        self._ring: deque[Record] = deque()
        self._cut_off_at = self._began
        """Everything from here on is in the ring."""
        self._carried: dict[str, dict[str, Record]] = {}
        """Of callers who still wait, what the ring has dropped: the submission, and how their job stands."""
        self._standing: dict[str, Record] = {}
        """The dropped records of loads that go on, of the surface and of the share."""
        self._spans = SpanKeeper(min(most, MOST_SPANS))
        self._metrics = MetricsCollector()
        self._watchers: dict[Watcher, None] = {}
        source.observe(self.note)
        source.observe_tokens(self._metrics.produced)

    def note(self, record: Record) -> None:
        """Takes the next record of the trace."""
        self._serial += 1
        self._last = max(self._last, record.t)
        self._ring.append(record)
        self._spans.note(record)
        self._metrics.note(record)
        self._forget(record.t)
        if self._watchers:
            told = TraceRecord(serial=self._serial, t=record.t, event=record.event, fields=record.fields)
            for watcher in self._watchers:
                watcher.put(told)

    # -- the port

    def recent(self) -> History:
        now = self._now()
        self._forget(now)
        spans = self._spans
        return History(
            at=now,
            now=self._clock.now(),
            since=self._cut_off_at,
            runs=(*spans.runs, *spans.on_device.values()),
            swaps=(*spans.swaps, *spans.loading.values()),
            decisions=tuple(spans.decisions),
        )

    async def watch(self) -> AsyncIterator[SchedulerChange]:
        if len(self._watchers) >= MOST_WATCHERS:
            raise TooManyWatchers(MOST_WATCHERS)
        watcher = Watcher(self._watch_buffer)
        self._watchers[watcher] = None
        try:
            while True:
                await watcher.news.wait()
                watcher.news.clear()
                while watcher.waiting:
                    if watcher.missed:
                        missed, watcher.missed = watcher.missed, 0
                        yield MissedRecords(missed=missed)
                    if watcher.waiting:
                        yield watcher.waiting.popleft()
        finally:
            del self._watchers[watcher]

    def export(self) -> tuple[str, ...]:
        now = self._now()
        self._forget(now)
        trace = [*self._opening(), *(plain_record(r, r.t - self._cut_off_at) for r in self._ring)]
        trace.append(summarise(trace, now - self._cut_off_at))
        return tuple(json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in trace)

    def metrics(self) -> SchedulerMetrics:
        return self._metrics.view(self._source.gauges())

    # -- the window

    def _now(self) -> float:
        return max(self._clock.monotonic(), self._last)

    def _forget(self, now: float) -> None:
        cut = now - self._window_s
        ring = self._ring
        while ring and (ring[0].t < cut or len(ring) > self._most):
            self._drop(ring.popleft())
            self._cut_off_at = max(self._cut_off_at, ring[0].t if ring else cut)
        self._cut_off_at = max(self._cut_off_at, cut)
        self._spans.forget_before(self._cut_off_at)

    def _drop(self, record: Record) -> None:
        """What is still going on must be told at the beginning of an export."""
        event, job = record.event, record.fields.get("job", "")
        if event == "submit":
            self._carried[job] = {"submit": record}
        elif event in ENDS:
            self._carried.pop(job, None)
        elif event in ("dispatch", "stopped") and job in self._carried:
            self._carried[job]["stand"] = record
        elif event in ("foreground", "configure", "share"):
            self._standing[event] = record
        elif event == "swap_start":
            self._standing[f"load {record.fields['to']}"] = record
        elif event == "swap_end":
            self._standing.pop(f"load {record.fields['to']}", None)

    def _opening(self) -> Iterator[dict[str, Any]]:
        carried = [record for records in self._carried.values() for record in records.values()]
        for record in sorted([*carried, *self._standing.values()], key=lambda record: record.t):
            yield {**plain_record(record, 0.0), "age_s": round(self._cut_off_at - record.t, 6)}
