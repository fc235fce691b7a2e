"""What was on the device when, and why: kept from the trace as it comes, within limits."""

from collections import deque
from typing import Any

from data.scheduling.events import Record
from data.scheduling.sharers import Sharers
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import Decision, RunSpan, SwapSpan

ENDS = {"finish": "finished", "cancelled": "cancelled", "failed": "failed"}
SWITCH = LlmTaskKind.MODEL_SWITCH


class SpanKeeper:
    """Give it every trace record in order. At most `most` runs, swaps and decisions each, the newest."""

    def __init__(self, most: int) -> None:
        self.runs: deque[RunSpan] = deque(maxlen=most)
        """Ended ones, in order of their ends."""
        self.swaps: deque[SwapSpan] = deque(maxlen=most)
        self.decisions: deque[Decision] = deque(maxlen=most)
        self.on_device: dict[str, RunSpan] = {}
        self.loading: dict[str, SwapSpan] = {}
        """By the model that is loaded; devices elsewhere load beside the one here."""
        self._sharers = Sharers()
        self._who: dict[str, tuple[LlmTaskKind, str]] = {}
        self._stops: dict[str, dict[str, Any]] = {}
        """Of jobs told to stop: the record that says so."""

    def note(self, record: Record) -> None:
        t, fields = record.t, record.fields
        job: str = fields.get("job", "")
        match record.event:
            case "submit":
                self._sharers.enter(job, fields.get("joined"))
                self._who[job] = (fields["kind"], fields["flow"])
            case "dispatch":
                self._start(t, fields)
            case "preempt":
                self._stops[job] = fields
                by_kind = self._who.get(fields["by"], (SWITCH, ""))[0]
                self._decide(t, "stop", job, fields, by=fields["by"], by_kind=by_kind)
            case "stopped":
                stop = self._stops.pop(job, None)
                self._close(job, t, "cancelled" if stop is None else "preempted", fields["tokens_done"], stop)
            case "finish" | "cancelled" | "failed":
                self._end(t, record.event, fields)
            case "swap_start":
                self._swap(t, fields)
            case "unload":
                self._decide(t, "unload", "", {**fields, "kind": SWITCH, "flow": ""})
            case "swap_end" if fields["to"] in self.loading:
                loaded = self.loading.pop(fields["to"])
                self.swaps.append(loaded.model_copy(update={"end": t, "ok": fields["ok"]}))

    def forget_before(self, cut: float) -> None:
        """Drops what had ended by then."""
        for spans in (self.runs, self.swaps):
            while spans and (spans[0].end or cut) < cut:
                spans.popleft()
        while self.decisions and self.decisions[0].at < cut:
            self.decisions.popleft()

    def _start(self, t: float, fields: dict[str, Any]) -> None:
        job = fields["job"]
        self._close(job, t, "lost")
        self.on_device[job] = RunSpan(
            job=job,
            kind=fields["kind"],
            flow=fields["flow"],
            model=fields["model"],
            tier=fields["tier"],
            start=t,
            end=None,
            resumed=fields["resumed"],
            reason=fields["reason"],
            how="running",
            tokens=None,
            by=None,
            why="",
        )
        self._decide(t, "resume" if fields["resumed"] else "start", job, fields)

    def _swap(self, t: float, fields: dict[str, Any]) -> None:
        trigger, old, new = fields["trigger"], fields["from"], fields["to"]
        for job in [name for name, run in self.on_device.items() if run.model == new]:
            # Its model is loaded while it runs: the engine was lost under it.
            self._close(job, t, "lost")
        kind, flow = self._who.get(trigger, (SWITCH, ""))
        self.loading[new] = SwapSpan(
            old=old, new=new, start=t, end=None, trigger=trigger, reason=fields["reason"], ok=None
        )
        told = {"kind": kind, "flow": flow, "model": new, "reason": fields["reason"]}
        self._decide(t, "swap", trigger, told, by=old)

    def _end(self, t: float, event: str, fields: dict[str, Any]) -> None:
        job = fields["job"]
        self._who.pop(job, None)
        heir = self._sharers.leave(job)
        if heir is not None:
            if job in self.on_device:
                self.on_device[heir] = self.on_device.pop(job)
            if job in self._stops:
                self._stops[heir] = self._stops.pop(job)
            return
        self._stops.pop(job, None)
        if job in self.on_device:
            self._close(job, t, ENDS[event], fields.get("tokens_done"))
        elif self.runs and (last := self.runs[-1]).job == job and last.end == t:
            self.runs[-1] = last.model_copy(update={"how": ENDS[event]})

    def _close(
        self, job: str, t: float, how: str, tokens: int | None = None, stop: dict[str, Any] | None = None
    ) -> None:
        span = self.on_device.pop(job, None)
        if span is None:
            return
        why = {"by": stop["by"], "why": stop["reason"]} if stop is not None else {}
        self.runs.append(span.model_copy(update={"end": t, "how": how, "tokens": tokens, **why}))

    def _decide(
        self,
        t: float,
        what: str,
        job: str,
        fields: dict[str, Any],
        by: str | None = None,
        by_kind: LlmTaskKind | None = None,
    ) -> None:
        told = {name: fields[name] for name in ("kind", "flow", "model", "reason")}
        self.decisions.append(
            Decision.model_validate({"at": t, "what": what, "job": job, "by": by, "by_kind": by_kind, **told})
        )
