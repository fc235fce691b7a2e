"""From what happened to figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from data.scheduling.events import Record
from domain.entities.demo import (
    DemoChat,
    DemoGana,
    DemoPolicy,
    DemoQuantile,
    DemoQuantiles,
    DemoRun,
    DemoSpan,
)
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import JobView, SchedulerSnapshot

_LEAVES = ("stopped", "finish", "cancelled", "failed")
NTH_TOKEN = 30


@dataclass
class ChatLog:
    """One chat, as its reader saw it. Times in seconds from the start of the window."""

    question: str
    sent_s: float
    first_s: float | None = None
    thirtieth_s: float | None = None
    tokens: int = 0
    text: str = ""
    finished: bool = False

    def tell(self, at_s: float, text: str, tokens: int) -> None:
        """New text has arrived; `tokens` is the count so far."""
        self.text += text
        self.tokens = tokens
        if self.first_s is None:
            self.first_s = at_s
        if self.thirtieth_s is None and tokens >= NTH_TOKEN:
            self.thirtieth_s = at_s

    def seen(self, now_s: float) -> DemoChat:
        """As things stand; what has not come yet has been waited for until now."""
        return DemoChat(
            question=self.question,
            sent_s=self.sent_s,
            waited_s=(now_s if self.first_s is None else self.first_s) - self.sent_s,
            first_token=self.first_s is not None,
            thirtieth_waited_s=(now_s if self.thirtieth_s is None else self.thirtieth_s) - self.sent_s,
            thirtieth_token=self.thirtieth_s is not None,
            tokens=self.tokens,
            text=self.text,
            finished=self.finished,
        )


@dataclass
class Trace:
    """The scheduler's records of one window, boiled down as they come."""

    start: float
    """Of the window, on the scheduler's clock."""
    spans: list[DemoSpan] = field(default_factory=list)
    starts: dict[str, float] = field(default_factory=dict)
    """First dispatch of each Gana flow."""
    finished: dict[LlmTaskKind, int] = field(default_factory=dict)
    finished_tokens: int = 0
    """Of background jobs."""
    failure: str | None = None
    _on_device: tuple[LlmTaskKind, float] | None = None

    def __call__(self, record: Record) -> None:
        kind, at_s = record.fields.get("kind"), record.t - self.start
        if not isinstance(kind, LlmTaskKind) or at_s < 0:
            return
        if record.event == "dispatch":
            self._on_device = (kind, at_s)
            if kind is LlmTaskKind.GANA:
                self.starts.setdefault(record.fields["flow"], at_s)
        elif record.event in _LEAVES:
            self._leave(at_s, record)
            if record.event == "finish":
                self.finished[kind] = self.finished.get(kind, 0) + 1
                if kind is not LlmTaskKind.CHAT:
                    self.finished_tokens += record.fields["tokens_done"]
            elif record.event == "failed" and self.failure is None:
                self.failure = record.fields["error"]

    def spans_at(self, now_s: float) -> tuple[DemoSpan, ...]:
        """All so far, the running job's included."""
        if self._on_device is None:
            return tuple(self.spans)
        kind, start_s = self._on_device
        return (*self.spans, DemoSpan(start_s=start_s, end_s=max(start_s, now_s), kind=kind))

    def background_tokens(self, snapshot: SchedulerSnapshot) -> int:
        """Of finished jobs, and what the others have produced so far."""
        return self.finished_tokens + sum(
            job.tokens_done for job in live_jobs(snapshot) if job.kind is not LlmTaskKind.CHAT
        )

    def _leave(self, at_s: float, record: Record) -> None:
        # A queued job that is cancelled never had the device.
        if self._on_device is not None and self._on_device[0] is record.fields["kind"]:
            kind, start_s = self._on_device
            self.spans.append(DemoSpan(start_s=start_s, end_s=at_s, kind=kind))
            self._on_device = None


def live_jobs(snapshot: SchedulerSnapshot) -> list[JobView]:
    """The running job and all that wait."""
    waiting = [job for tier in snapshot.tiers.values() for job in tier]
    return waiting if snapshot.running is None else [snapshot.running, *waiting]


def measure(
    policy: DemoPolicy,
    window_s: float,
    load_s: float,
    trace: Trace,
    chats: Sequence[DemoChat],
    due_s: dict[str, float],
    snapshot: SchedulerSnapshot,
    swaps_before: int,
) -> DemoRun:
    """The figures of one window that has just closed. `due_s` is keyed by Gana flow."""
    tokens = trace.background_tokens(snapshot)
    spans = trace.spans_at(window_s)
    return DemoRun(
        policy=policy,
        window_s=window_s,
        load_s=load_s,
        chats=tuple(chats),
        first_token_s=_quantiles([(chat.waited_s, not chat.first_token) for chat in chats]),
        thirtieth_token_s=_thirtieth(chats),
        background_tokens=tokens,
        background_tokens_per_s=tokens / window_s,
        finished=dict(trace.finished),
        ganas=tuple(_gana(flow, due, trace.starts.get(flow), window_s) for flow, due in due_s.items()),
        busy_s=_seconds(spans),
        chats_s=_seconds([span for span in spans if span.kind is LlmTaskKind.CHAT]),
        preemptions=snapshot.preemptions,
        swaps=snapshot.swaps - swaps_before,
        spans=spans,
    )


def _seconds(spans: Sequence[DemoSpan]) -> float:
    return sum(span.end_s - span.start_s for span in spans)


def _thirtieth(chats: Sequence[DemoChat]) -> DemoQuantiles | None:
    times = [(chat.thirtieth_waited_s, not chat.thirtieth_token) for chat in chats if not chat.ended_early]
    return _quantiles(times) if times else None


def _gana(flow: str, due_s: float, start_s: float | None, window_s: float) -> DemoGana:
    late_s = max(0.0, (window_s if start_s is None else start_s) - due_s)
    return DemoGana(flow=flow, due_s=due_s, late_s=late_s, started=start_s is not None)


def _quantiles(times: Sequence[tuple[float, bool]]) -> DemoQuantiles:
    """Nearest rank. Each time comes with whether it is only a lower bound."""
    p50, p95, largest = (_quantile(sorted(times), q) for q in (0.50, 0.95, 1.0))
    return DemoQuantiles(count=len(times), p50=p50, p95=p95, max=largest)


def _quantile(ordered: Sequence[tuple[float, bool]], q: float) -> DemoQuantile:
    value, _ = ordered[max(0, math.ceil(q * len(ordered)) - 1)]
    return DemoQuantile(value_s=value, lower_bound=any(open_ for time, open_ in ordered if time <= value))
