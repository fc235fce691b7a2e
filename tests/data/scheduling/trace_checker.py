"""Judges a simulated trace by the contract in docs/scheduler.md alone.

`check_trace` replays the scenario beside the trace. It keeps its own books (who waits, what is resident, what a swap
costs, who has used what) and knows no class of the scheduler. At each record it asks whether the contract allows what
happened; before each record it asks whether something should have happened already. Where the contract leaves a
moment open, two readings are asked, the early and the late one, and either may be taken.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from data.scheduling.scenario import Scenario, SubmitSpec
from domain.entities.llm import LlmTaskKind

Line = Mapping[str, Any]

ROUNDING_S = 1e-5
"""Times in a trace are rounded to a microsecond."""
SLACK_S = 0.05
"""How late a timer may be before it counts as missed."""

POOL = (LlmTaskKind.NATARAJ, LlmTaskKind.GANA, LlmTaskKind.API)
SWITCH = "model_switch"

JOB_EVENTS: dict[str, dict[str, Any]] = {
    "submit": {},
    "dispatch": {"resumed": bool},
    "preempt": {"by": str, "reason": str},
    "stopped": {"tokens_done": int},
    "first_token": {},
    "finish": {"service_s": (int, float), "preemptions": int},
    "cancelled": {},
    "failed": {"error": str},
    "rejected": {"error": str},
}
OTHER_EVENTS: dict[str, dict[str, Any]] = {
    "swap_start": {"from": (str, type(None)), "to": str, "trigger": str},
    "swap_end": {},
    "foreground": {"kind": (str, type(None)), "subject": (str, type(None))},
    "share": {"value": (int, float), "exhausted": bool},
}


class Violation(AssertionError):
    """The trace does what the contract forbids, or leaves out what it demands."""


@dataclass(eq=False)
class Life:
    """What the checker knows of a job."""

    spec: SubmitSpec
    arrival: int
    submitted_at: float
    queued_at: float
    callers: list[str]
    hinted: bool
    deadline: float | None
    blocked_on: "Life | None" = None
    state: str = "queued"
    tokens: int = 0
    kv_tokens: int = 0
    kv_epoch: int = -1
    runs: list[tuple[float, float, int]] = field(default_factory=list)
    """Start, end, tier at dispatch."""
    ever_ran: bool = False
    preemptions: int = 0
    cancel_asked: bool = False
    forced: bool = False
    fruitless_s: float = 0.0
    """Length of its last run, if that brought no token."""
    ended_at: float | None = None

    @property
    def flow(self) -> tuple[LlmTaskKind, str]:
        return (self.spec.kind, self.spec.flow)

    @property
    def live(self) -> bool:
        return self.state != "ended"

    @property
    def lead(self) -> "Life":
        job = self
        while job.blocked_on is not None and job.blocked_on.live:
            job = job.blocked_on
        return job

    @property
    def service_s(self) -> float:
        return sum(end - start for start, end, _ in self.runs)


@dataclass(frozen=True)
class Option:
    """A job that the contract would have on the device, and why."""

    job: Life
    tier: int
    due: bool = False


class Share:
    """Extract's part of the busy time, from the runs seen."""

    def __init__(self, window_s: float, least_s: float) -> None:
        self.window_s, self.least_s = window_s, least_s
        self.runs: list[tuple[float, float, bool]] = []

    def value(self, at: float) -> float:
        cut = at - self.window_s
        busy = extract = 0.0
        for start, end, is_extract in reversed(self.runs):
            if end <= cut:
                break
            seconds = max(0.0, min(end, at) - max(start, cut))
            busy += seconds
            extract += seconds * is_extract
        return extract / max(self.least_s, busy)


class Books:
    """Virtual runtimes by section 5, as long as they are certain: until the first halving, and until somebody starts
    while nobody is active (from then on more than one reading is sound)."""

    def __init__(self, certain_until: float) -> None:
        self.certain_until = certain_until
        self.vruntime: dict[Any, float] = {}
        self.live: dict[Any, int] = {}

    def _levels(self, job: Life) -> Iterator[tuple[Any, list[Any]]]:
        kinds = [k for k in self.vruntime if not isinstance(k, tuple)]
        flows = [k for k in self.vruntime if isinstance(k, tuple) and k[0] is job.spec.kind]
        yield job.spec.kind, kinds
        yield job.flow, flows

    def enter(self, job: Life, at: float) -> None:
        for key, level in self._levels(job):
            own = self.vruntime.get(key, 0.0)
            if not self.live.get(key):
                active = [self.vruntime[k] for k in level if self.live.get(k)]
                if active:
                    own = max(own, min(active))
                elif any(self.vruntime[k] > own for k in level):
                    self.certain_until = min(self.certain_until, at)
            self.vruntime[key] = own
            self.live[key] = self.live.get(key, 0) + 1

    def leave(self, job: Life) -> None:
        for key in (job.spec.kind, job.flow):
            self.live[key] -= 1

    def charge(self, job: Life, seconds: float, weight: float, kind_weight: float) -> None:
        self.vruntime[job.flow] += seconds / weight
        self.vruntime[job.spec.kind] += seconds / kind_weight


class TraceChecker:
    """One replay."""

    def __init__(self, scenario: Scenario, trace: Sequence[Line]) -> None:
        self.scenario, self.config, self.trace = scenario, scenario.config, trace
        self.now = 0.0
        self.users = deque(sorted(scenario.events, key=lambda event: event.at))
        self.jobs: dict[str, Life] = {}
        """By the id of every caller."""
        self.specs: dict[str, SubmitSpec] = {}
        self.all: list[Life] = []
        self.alive: dict[Life, None] = {}
        self.resident = scenario.loaded
        self.resident_since = 0.0
        self.costs: dict[str, float] = {}
        self.left_at: dict[str, float] = {}
        self.loading: tuple[str, float, Life | None] | None = None
        self.owed: Life | None = None
        self.switches: deque[tuple[str, bool]] = deque()
        self.running: Life | None = None
        self.run_started = self.charged_to = self.protected_until = 0.0
        self.run_flow = ""
        self.flow_service: dict[str, float] = {}
        """By the flow that the dispatch tells; who joined may have another."""
        self.run_tier = 0
        self.stop_asked_at: float | None = None
        self.epoch = 0
        self.surface: tuple[LlmTaskKind, str | None] | None = None
        self.served: dict[Any, int] = {}
        self.serial = 0
        self.chat_end: tuple[str, float] | None = None
        self.exhausted = False
        self.share = Share(self.config.share_window_s, self.config.share_min_busy_s)
        first = self.users[0].at if self.users else 0.0
        self.books = Books(first + self.config.halving_period_s)
        self.first_tokens: set[str] = set()
        self.ends: dict[str, str] = {}
        self.index = -1
        self.swaps: list[tuple[float, float, str, str]] = []
        """Start, end, model, trigger."""

    # -- the walk

    def run(self) -> None:
        check_format(self.trace)
        for index, line in enumerate(self.trace[:-1]):
            self.index = index
            self._move_to(line["t"])
            getattr(self, "_on_" + line["event"])(line)
            self.now = max(self.now, line["t"])
        end = self.trace[-1]["t"]
        self._move_to(end)
        self._apply_users(end, always=True)
        if self.running is not None:
            self._close_run(end)
        if self.scenario.until is None:
            left = [caller for caller in self.jobs if caller not in self.ends]
            self._require(not left, f"never ended: {left[:5]}")
            self._require(self.loading is None, "the trace ends inside a swap")

    def _move_to(self, t: float) -> None:
        """Asks whether something was missed on the way to `t`, and applies users' acts that leave no record."""
        while self.users and self.users[0].at < t - ROUNDING_S:
            self._must(self.users[0].at - SLACK_S)
            self._apply_users(self.users[0].at)
        self._must(t - SLACK_S)

    def _apply_users(self, until: float, always: bool = False) -> None:
        """Cancels and switches up to `until`; anything else there should have had its record."""
        while self.users and self.users[0].at <= until + (ROUNDING_S if always else 0.0):
            event = self.users[0]
            self._require(
                event.submit is None and "foreground" not in event.model_fields_set,
                f"the event at {event.at} has no record",
            )
            self._apply_hidden()

    def _apply_hidden(self) -> None:
        event = self.users.popleft()
        if event.switch_model is not None:
            if self.switches or event.switch_model.model != self.resident:
                self.switches.append((event.switch_model.model, event.switch_model.force))
        elif event.cancel is not None:
            job = self.jobs.get(event.cancel)
            if job is None or not job.live or event.cancel not in job.callers:
                return
            if len(job.callers) == 1 and job.state == "running":
                job.cancel_asked = True
                if self.stop_asked_at is None:
                    self.stop_asked_at = event.at
            else:
                following = self.trace[self.index] if self.index >= 0 else {}
                self._expect_cancelled(event.cancel, event.at, following)

    def _expect_cancelled(self, caller: str, at: float, following: Line) -> None:
        """The next record must be the end of a queued job, or of one of several callers."""
        self._require(
            following.get("event") == "cancelled" and following.get("job") == caller,
            f"{caller} was cancelled at {at} but its end is not told at once",
        )
        self.jobs[caller].cancel_asked = True

    def _next_user(self, line: Line) -> Any:
        """The scenario's event that this record tells of; silent acts before it are applied."""
        while self.users and (self.users[0].cancel is not None or self.users[0].switch_model is not None):
            self._apply_hidden()
        self._require(bool(self.users), f"a record without an event: {line}")
        event = self.users.popleft()
        self._require(
            abs(event.at - line["t"]) <= ROUNDING_S, f"{line} comes at another time than {event.at}"
        )
        return event

    # -- records

    def _on_submit(self, line: Line) -> None:
        spec = self._next_user(line).submit
        self._require(spec is not None and spec.id == line["job"], f"another submit was expected: {line}")
        self._require(not self._full(spec), f"{spec.id} was accepted past a limit")
        self._require(spec.id not in self.jobs, f"{spec.id} submitted twice")
        self.specs[spec.id] = spec
        self._job_fields(line, spec)
        if "joined" in line:
            self._join(line, spec)
            return
        blocker = self.jobs.get(spec.waits_for) if spec.waits_for is not None else None
        if blocker is not None and (not blocker.live or spec.waits_for not in blocker.callers):
            blocker = None
        if spec.coalesce_key is not None:
            twins = [j for j in self._live() if j.state == "queued" and _twin(j.spec, spec)]
            self._require(not twins, f"{spec.id} should have joined {[j.spec.id for j in twins]}")
        job = Life(
            spec, len(self.all), line["t"], line["t"], [spec.id], spec.foreground_hint, spec.deadline, blocker
        )
        self.jobs[spec.id] = job
        self.all.append(job)
        self.alive[job] = None
        if spec.kind in POOL:
            self._settle(line["t"])
            self.books.enter(job, line["t"])
        self._tier_told(line, job)

    def _join(self, line: Line, spec: SubmitSpec) -> None:
        leader = self.jobs.get(line["joined"])
        self._require(
            leader is not None and leader.state == "queued" and _twin(leader.spec, spec),
            f"{spec.id} joined {line['joined']}, which is no queued job with its key",
        )
        assert leader is not None
        leader.callers.append(spec.id)
        leader.hinted = leader.hinted or spec.foreground_hint
        if spec.deadline is not None:
            leader.deadline = (
                spec.deadline if leader.deadline is None else min(leader.deadline, spec.deadline)
            )
        self.jobs[spec.id] = leader

    def _on_rejected(self, line: Line) -> None:
        spec = self._next_user(line).submit
        self._require(spec is not None and spec.id == line["job"], f"another submit was expected: {line}")
        self._job_fields(line, spec)
        self._require(self._full(spec), f"{spec.id} was rejected below the limits")
        self._end_caller(spec.id, "rejected")

    def _on_foreground(self, line: Line) -> None:
        event = self._next_user(line)
        self._require("foreground" in event.model_fields_set, f"no surface changed: {line}")
        new = None if event.foreground is None else (event.foreground.kind, event.foreground.subject)
        told = (line["kind"], line["subject"])
        self._require(
            told == ((None, None) if new is None else (new[0].value, new[1])), f"wrong surface: {line}"
        )
        if self.surface is not None and (new is None or new[0] is not self.surface[0]):
            for job in self._live():
                if job.spec.kind is not LlmTaskKind.API:
                    job.hinted = False
        self.surface = new

    def _on_share(self, line: Line) -> None:
        value = self._share_at(line["t"])
        self._require(abs(value - line["value"]) < 1e-4, f"extract's share is {value}: {line}")
        self._require(line["exhausted"] is not self.exhausted, f"nothing changed: {line}")
        if line["exhausted"]:
            self._require(value > self.config.extract_share - 1e-5, f"not used up: {line}")
        else:
            self._require(value < self.config.extract_resume_share + 1e-5, f"still used up: {line}")
        self.exhausted = line["exhausted"]

    def _on_dispatch(self, line: Line) -> None:
        job = self._known(line)
        t = line["t"]
        self._require(self.running is None and self.loading is None, f"the device is not free: {line}")
        self._require(job.state == "queued", f"{job.spec.id} is {job.state}: {line}")
        self._require(job.lead is job, f"{job.spec.id} waits for another job: {line}")
        self._require(job.spec.model == self.resident, f"{self.resident} is resident: {line}")
        self._require(line["resumed"] is job.ever_ran, f"`resumed` is wrong: {line}")
        self._drop_satisfied_switches()
        self._require(not self.switches, f"a model switch goes first: {line}")
        self._require(
            any(option.job.lead is job for option in self._options(t)),
            f"the contract wants {self._names(t)}, not {job.spec.id}",
        )
        self._tier_told(line, job)
        if _is_chat(job) and not job.ever_ran:
            self._chat_was_prompt(job, t)
        if self.owed is not None and self.owed.lead is job:
            self.owed = None
        job.state, job.ever_ran, job.forced = "running", True, False
        self.running, self.run_started, self.run_tier = job, t, line["tier"]
        self.charged_to, self.run_flow = t, f"{line['kind']}/{line['flow']}"
        self.protected_until = t + 2 * job.fruitless_s
        self.stop_asked_at = None

    def _on_preempt(self, line: Line) -> None:
        job = self._on_device(line)
        t = line["t"]
        self._require(self.stop_asked_at is None, f"it is being stopped already: {line}")
        self._require(bool(line["reason"].strip()), f"no reason in words: {line}")
        if line["by"] == SWITCH:
            while not any(force for _, force in self.switches):
                self._require(
                    bool(self.users)
                    and self.users[0].at <= t + ROUNDING_S
                    and self.users[0].switch_model is not None,
                    f"no forced switch was asked for: {line}",
                )
                self._apply_hidden()
            job.forced = True
        else:
            self._require(not _is_chat(job), f"a chat is never put back: {line}")
            by = self.jobs.get(line["by"])
            self._require(by is not None and by.live and by is not job, f"by nobody: {line}")
            allowed = [o for o in self._options(t) if o.job.lead is by and self._may_stop(job, o, t, True)]
            self._require(bool(allowed), f"no reason of section 3 holds: {line}; wanted {self._names(t)}")
        self.stop_asked_at = t

    def _on_stopped(self, line: Line) -> None:
        job = self._on_device(line)
        t = line["t"]
        self._require(type(line["tokens_done"]) is int, f"tokens_done: {line}")
        while self.stop_asked_at is None:
            self._require(
                bool(self.users) and self.users[0].at <= t + ROUNDING_S, f"nobody asked for that: {line}"
            )
            self._apply_users(self.users[0].at)
        self._boundary(job, t, line["tokens_done"], finished=False)
        self._close_run(t)
        if job.cancel_asked or (job.forced and _is_chat(job)):
            word = "cancelled" if job.cancel_asked else "failed"
            following = self.trace[self.index + 1]
            self._require(
                following["event"] == word and following["job"] in job.callers,
                f"{word} expected after {line}",
            )
            job.state = "stopped"
        else:
            job.state, job.queued_at = "queued", t
            job.preemptions += 1

    def _on_first_token(self, line: Line) -> None:
        job = self.jobs.get(line["job"])
        self._require(job is not None and job is self.running, f"it does not run: {line}")
        assert job is not None
        self._require(line["job"] not in self.first_tokens, f"a second first token: {line}")
        self._require(job.tokens == 0 and job.spec.output_tokens > 0, f"not its first token: {line}")
        speed = self.scenario.models[job.spec.model]
        at = self.run_started + self._to_prefill(job) / speed.prefill_tps + 1 / speed.decode_tps
        self._require(abs(at - line["t"]) < 1e-4, f"the first token comes at {at}: {line}")
        self.first_tokens.add(line["job"])

    def _on_finish(self, line: Line) -> None:
        job = self.jobs.get(line["job"])
        self._require(job is not None and line["job"] in job.callers, f"unknown job: {line}")
        assert job is not None
        self._job_fields(line, self.specs[line["job"]])
        if job is self.running:
            self._boundary(job, line["t"], job.spec.output_tokens, finished=True)
            self._close_run(line["t"])
            job.state = "finishing"
        self._require(job.state == "finishing", f"it did not run to its end: {line}")
        self._require(abs(line["service_s"] - job.service_s) < 1e-3, f"service is {job.service_s}: {line}")
        self._require(line["preemptions"] == job.preemptions, f"preempted {job.preemptions} times: {line}")
        if job.spec.output_tokens and line["job"] == job.spec.id:
            self._require(line["job"] in self.first_tokens, f"no first token: {line}")
        self._end_caller(line["job"], "finish", job)

    def _on_cancelled(self, line: Line) -> None:
        job = self.jobs.get(line["job"])
        self._require(job is not None and line["job"] in job.callers, f"it is not live: {line}")
        assert job is not None
        while not (job.cancel_asked or job.state == "stopped"):
            self._require(bool(self.users), f"nobody cancelled it: {line}")
            event = self.users[0]
            self._require(event.at <= line["t"] + ROUNDING_S, f"nobody cancelled it: {line}")
            self._apply_hidden()
        job.cancel_asked = False
        if len(job.callers) == 1:
            self._require(job.state in ("queued", "stopped"), f"it still runs: {line}")
        self._end_caller(line["job"], "cancelled", job)

    def _on_failed(self, line: Line) -> None:
        job = self.jobs.get(line["job"])
        self._require(job is not None and job.state == "stopped" and job.forced, f"no cause: {line}")
        self._require("switch" in line["error"], f"the error does not say what stopped it: {line}")
        self._end_caller(line["job"], "failed", job)

    def _on_swap_start(self, line: Line) -> None:
        t = line["t"]
        self._require(self.running is None and self.loading is None, f"the device is not free: {line}")
        self._require(line["from"] == self.resident, f"{self.resident} is resident: {line}")
        self._require(line["to"] != self.resident, f"it is loaded already: {line}")
        self._require(line["to"] in self.scenario.models, f"unknown model: {line}")
        trigger: Life | None = None
        if line["trigger"] == SWITCH:
            self._drop_satisfied_switches()
            while not self.switches:
                self._require(
                    bool(self.users) and self.users[0].at <= t + ROUNDING_S,
                    f"no switch was asked for: {line}",
                )
                self._apply_hidden()
                self._drop_satisfied_switches()
            self._require(self.switches[0][0] == line["to"], f"{self.switches[0][0]} was asked for: {line}")
            self.switches.popleft()
        else:
            self._drop_satisfied_switches()
            self._require(not self.switches, f"a model switch goes first: {line}")
            trigger = self.jobs.get(line["trigger"])
            self._require(trigger is not None and trigger.state == "queued", f"no such job waits: {line}")
            assert trigger is not None
            self._require(trigger.spec.model == line["to"], f"{trigger.spec.model} was wanted: {line}")
            self._require(
                any(option.job.lead is trigger for option in self._options(t)),
                f"section 6 does not allow it, it wants {self._names(t)}: {line}",
            )
        self.loading = (line["to"], t, trigger)
        if self.resident is not None:
            self.left_at[self.resident] = t
        self.resident, self.owed = None, None
        self.epoch += 1

    def _on_swap_end(self, line: Line) -> None:
        self._require(self.loading is not None, f"no swap was under way: {line}")
        assert self.loading is not None
        model, started, trigger = self.loading
        seconds = line["t"] - started
        expected = self.scenario.models[model].load_s
        self._require(abs(seconds - expected) < 1e-4, f"a load of {model} takes {expected} s: {line}")
        self._require(line.get("to", model) == model, f"{model} was being loaded: {line}")
        alpha = self.config.swap_cost_alpha
        known = self.costs.get(model)
        self.costs[model] = seconds if known is None else (1 - alpha) * known + alpha * seconds
        self.swaps.append((started, line["t"], model, trigger.spec.id if trigger else SWITCH))
        self.loading, self.resident, self.resident_since = None, model, line["t"]
        self.owed = trigger if trigger is not None and trigger.live else None
        if trigger is not None and trigger.spec.kind in POOL:
            self.books.charge(trigger, seconds, self._weight(trigger), self._kind_weight(trigger))

    # -- what the contract wants

    def _options(self, t: float) -> list[Option]:
        """Everybody whom some reading of the contract would have on the device about now."""
        return [
            option
            for at in (t - ROUNDING_S, t + ROUNDING_S)
            for early in (True, False)
            for option in self._best(at, early=early)
        ]

    def _names(self, t: float) -> list[str]:
        return [
            f"{o.job.spec.id}->{o.job.lead.spec.id} (T{o.tier}{', due' if o.due else ''})"
            for o in self._options(t)
        ]

    def _best(self, at: float, *, early: bool) -> list[Option]:
        live = self._live()
        chats = [job for job in live if _is_chat(job)]
        if chats:
            return [Option(min(chats, key=self._turn), 0)]
        if hoisted := self._hoisted(at, early, live):
            return hoisted
        if self.owed is not None and self.owed.live and self.owed.lead.spec.model == self.resident:
            return [Option(self.owed, self._tier(self.owed, at))]
        here = [job for job in live if job.lead.spec.model == self.resident]
        local = self._by_tier(here, at)
        if at < self._linger_until():
            return local
        due = self._due(live, at, early)
        protected = not early and at < self.protected_until
        if due and (not local or (not protected and self._stayed(at, due[0].job.lead.spec.model, early))):
            return due
        return local or self._by_tier(live, at)

    def _hoisted(self, at: float, early: bool, live: list[Life]) -> list[Option]:
        own = [job for job in live if self._is_surface(job)]
        hinted = [job for job in live if job.hinted]
        if not own and not hinted:
            return []
        first = min(own, key=self._turn) if own else None
        here = [job for job in (hinted + own[:0]) if job.lead.spec.model == self.resident]
        local_work = bool(here) or (first is not None and first.lead.spec.model == self.resident)
        able = [] if first is None else [first]
        for job in hinted:
            since = job.queued_at if early else max(job.queued_at, self.resident_since)
            if (
                job.lead.spec.model == self.resident
                or not local_work
                or at >= since + self._cost(job.lead.spec.model)
            ):
                able.append(job)
        best = min(able, key=self._turn)
        result = [Option(best, 1)]
        # Second reading: a foreign model is spoken for by the job that has waited longest for it.
        speakers = [job for job in able if job is first or job.lead.spec.model == self.resident]
        for model in {job.lead.spec.model for job in able} - {self.resident}:
            foreign = [job for job in able if job.lead.spec.model == model and job is not first]
            speakers += sorted(foreign, key=lambda job: (job.queued_at, job.arrival))[:1]
        return [*result, Option(min(speakers, key=self._turn), 1)]

    def _due(self, live: list[Life], at: float, early: bool) -> list[Option]:
        """The model that has been waited for longest, by its oldest waiting job."""
        found: list[tuple[float, int, Life]] = []
        # A model's wait counts from its last stay: only so the bound of section 6 can hold.
        for model in {job.lead.spec.model for job in live}:
            if model == self.resident:
                continue
            oldest = min(
                (self._waits_since(job, at, early), job.arrival, job)
                for job in live
                if job.lead.spec.model == model
            )
            if at >= oldest[0] + self._cost(model):
                found.append((max(oldest[0], self.left_at.get(model, 0.0)), *oldest[1:]))
        if not found:
            return []
        _, _, job = min(found)
        return [Option(job, self._tier(job, at), due=True)]

    def _waits_since(self, job: Life, at: float, early: bool) -> float:
        if job.deadline is None or job.deadline > at or job.spec.kind is LlmTaskKind.EXTRACT:
            return job.queued_at
        return min(job.queued_at, job.deadline) if early else job.deadline

    def _by_tier(self, jobs: list[Life], at: float) -> list[Option]:
        extracts = [job for job in jobs if job.spec.kind is LlmTaskKind.EXTRACT]
        if extracts and not self.exhausted:
            return [Option(min(extracts, key=lambda job: job.arrival), 2)]
        pool = [job for job in jobs if job.spec.kind in POOL]
        heads = [job for job in pool if job.lead is job or job.lead.spec.kind not in POOL]
        overdue = [job for job in pool if job.deadline is not None and job.deadline <= at]
        if overdue:
            return [Option(min(overdue, key=lambda job: (job.deadline or 0.0, job.arrival)), 3)]
        if heads:
            # What is inherited is the tier, not the vruntime: within the pool a waiter leaves the turn to its lead.
            return [Option(job, 4) for job in self._fair_heads(heads, at)]
        prompts = [job for job in jobs if job.spec.ahead]
        last = extracts or prompts
        return [Option(min(last, key=lambda job: job.arrival), 5)] if last else []

    def _fair_heads(self, pool: list[Life], at: float) -> list[Life]:
        """The oldest job of the flow with the smallest vruntime, in the kind with the smallest; ties all."""
        kinds = {job.spec.kind for job in pool}
        if at < self.books.certain_until:
            least = min(self._vruntime(kind, at) for kind in kinds)
            kinds = {kind for kind in kinds if self._vruntime(kind, at) <= least + 1e-3}
        heads = []
        for kind in kinds:
            flows = {job.flow for job in pool if job.spec.kind is kind}
            if at < self.books.certain_until:
                least = min(self._vruntime(flow, at) for flow in flows)
                flows = {flow for flow in flows if self._vruntime(flow, at) <= least + 1e-3}
            heads += [
                min((job for job in pool if job.flow == flow), key=lambda job: job.arrival) for flow in flows
            ]
        return heads

    def _vruntime(self, key: Any, at: float) -> float:
        value = self.books.vruntime[key]
        job = self.running
        if job is not None and job.spec.kind in POOL:
            if key == job.flow:
                value += (at - self.charged_to) / self._weight(job)
            elif key == job.spec.kind:
                value += (at - self.charged_to) / self._kind_weight(job)
        return value

    def _settle(self, at: float) -> None:
        """Charges the running job up to now."""
        job = self.running
        if job is not None and job.spec.kind in POOL:
            self.books.charge(job, at - self.charged_to, self._weight(job), self._kind_weight(job))
        self.charged_to = at

    def _may_stop(self, running: Life, option: Option, at: float, early: bool) -> bool:
        """The reasons of section 3, for an option that is preferred already."""
        tier = self._tier(running, at)
        if option.tier < tier:
            return True
        if option.due and 2 <= tier <= 5:
            return True
        if tier == option.tier == 4 and option.job.flow != running.flow:
            used = at - self.run_started + (ROUNDING_S if early else -SLACK_S)
            if used < self.config.fair_slice_s:
                return False
            if at >= self.books.certain_until:
                return early
            keys = (option.job.flow, running.flow)
            if option.job.spec.kind is not running.spec.kind:
                keys = (option.job.spec.kind, running.spec.kind)  # type: ignore[assignment]
            gap = self._vruntime(keys[1], at) - self._vruntime(keys[0], at)
            return gap > (-1e-4 if early else 2 * SLACK_S)
        return False

    def _must(self, at: float) -> None:
        """At `at` nothing may be left undone that all readings demanded before."""
        if at <= self.now or self.loading is not None:
            return
        self._share_in_time(at)
        if self.running is not None and self.stop_asked_at is not None:
            limit = self.stop_asked_at + self._delta(self.running.spec.model)
            self._require(at <= limit, f"{self.running.spec.id} does not stop within a boundary (t={at})")
            return
        if self.running is not None:
            running = self.running
            self._require(
                not any(force for _, force in self.switches),
                f"a forced switch waits at {at}, and nothing stops",
            )
            for early in (True, False):
                options = self._best(at, early=early)
                if any(option.job.lead is running for option in options):
                    return
                if not all(self._may_stop(running, option, at, False) for option in options):
                    return
            self._fail(
                f"{running.spec.id} (T{self._tier(running, at)}) runs on at {at}; wanted {self._names(at)}"
            )
        self._drop_satisfied_switches()
        self._require(not self.switches, f"idle at {at} although a model switch waits")
        wanted = [self._best(at, early=early) for early in (True, False)]
        self._require(not all(wanted), f"idle at {at} although {self._names(at)} could run")

    def _share_in_time(self, at: float) -> None:
        if not any(job.spec.kind is LlmTaskKind.EXTRACT for job in self._live()):
            return
        value = self._share_at(at)
        if self.exhausted:
            self._require(
                value >= self.config.extract_resume_share - 2e-3,
                f"share {value} at {at} still counts as used up",
            )
        elif self.running is not None:
            self._require(value <= self.config.extract_share + 2e-3, f"share {value} at {at} is not noticed")

    def _chat_was_prompt(self, job: Life, t: float) -> None:
        """Invariant 5: no chat before it, nothing else of higher rank: one boundary, and its swap if foreign."""
        rivals = [
            other
            for other in self.all
            if other is not job
            and _is_chat(other)
            and other.submitted_at <= t
            and (other.ended_at is None or other.ended_at > job.submitted_at)
        ]
        switched = any(e.switch_model is not None for e in self.scenario.events)
        if rivals or switched or job.spec.waits_for is not None:
            return
        limit = max(self._delta(model) for model in self.scenario.models)
        swaps = sum(
            end - max(start, job.submitted_at) for start, end, *_ in self.swaps if end > job.submitted_at
        )
        mine = [s for s in self.swaps if s[0] > job.submitted_at + ROUNDING_S]
        self._require(
            len(mine) <= 1 and all(s[3] in job.callers for s in mine),
            f"swaps before {job.spec.id} runs: {mine}",
        )
        self._require(
            t - job.submitted_at <= limit + swaps + 1e-4,
            f"{job.spec.id} waited {t - job.submitted_at} s, more than a boundary ({limit} s) and its swap",
        )

    # -- small facts

    def _live(self) -> list[Life]:
        return list(self.alive)

    def _turn(self, job: Life) -> tuple[int, int]:
        return (self.served.get(job.flow, 0), job.arrival)

    def _is_surface(self, job: Life) -> bool:
        if self.surface is None or job.spec.kind is LlmTaskKind.CHAT:  # read ahead or not
            return False
        return job.spec.kind is self.surface[0] and self.surface[1] in (None, job.spec.flow)

    def _own_tier(self, job: Life, at: float) -> int:
        if _is_chat(job):
            return 0
        if job.hinted or self._is_surface(job):
            return 1
        if job.spec.ahead:
            return 5
        if job.spec.kind is LlmTaskKind.EXTRACT:
            return 5 if self.exhausted else 2
        return 3 if job.deadline is not None and job.deadline <= at else 4

    def _tier(self, job: Life, at: float) -> int:
        """The best of its own and of those that wait for it."""
        return min([self._own_tier(job, at)] + [self._own_tier(other, at) for other in self._waiters(job)])

    def _waiters(self, job: Life) -> list[Life]:
        found, stack = [], [job]
        while stack:
            seen = stack.pop()
            direct = [other for other in self._live() if other.blocked_on is seen]
            found += direct
            stack += direct
        return found

    def _tier_told(self, line: Line, job: Life) -> None:
        tiers = {self._tier(job, line["t"] + d) for d in (-ROUNDING_S, ROUNDING_S)}
        self._require(line["tier"] in tiers, f"its tier is {tiers}: {line}")

    def _cost(self, model: str) -> float:
        return self.costs.get(model, self.config.default_swap_cost_s)

    def _stayed(self, at: float, target: str, early: bool) -> bool:
        """Q of the target's cost or of the resident one's: the contract has one c."""
        if self.resident is None:
            return True
        costs = (self._cost(target), self._cost(self.resident))
        c = min(costs) if early else max(costs)
        return at - self.resident_since >= c * (1 - self.config.swap_fraction) / self.config.swap_fraction

    def _linger_until(self) -> float:
        if self.chat_end is None or self.resident is None or self.chat_end[0] != self.resident:
            return float("-inf")
        stay = self.config.linger_factor * self._cost(self.resident)
        if self.surface is not None and self.surface[0] is LlmTaskKind.CHAT:
            stay = max(stay, self.config.linger_surface_s)
        return self.chat_end[1] + stay

    def _delta(self, model: str) -> float:
        speed = self.scenario.models[model]
        return max(self.config.prefill_chunk_tokens / speed.prefill_tps, 1 / speed.decode_tps) + 1e-4

    def _weight(self, job: Life) -> float:
        return self.config.flow_weights.get(f"{job.spec.kind.value}/{job.spec.flow}", job.spec.weight)

    def _kind_weight(self, job: Life) -> float:
        return self.config.kind_weights.get(job.spec.kind, 1.0)

    def _share_at(self, at: float) -> float:
        if self.running is None:
            return self.share.value(at)
        self.share.runs.append((self.run_started, at, self.running.spec.kind is LlmTaskKind.EXTRACT))
        value = self.share.value(at)
        self.share.runs.pop()
        return value

    def _full(self, spec: SubmitSpec) -> bool:
        queued = [job for job in self._live() if job.state == "queued"]
        flow = sum(len(job.callers) for job in queued if job.flow == (spec.kind, spec.flow))
        total = sum(len(job.callers) for job in queued)
        return total >= self.config.max_queued or flow >= self.config.max_queued_per_flow

    def _to_prefill(self, job: Life) -> int:
        kept = job.kv_tokens if job.kv_epoch == self.epoch else 0
        return max(0, job.spec.prompt_tokens + job.tokens - kept)

    def _boundary(self, job: Life, t: float, tokens: int, *, finished: bool) -> None:
        """The run must end where the engine can stop, and a resumed job must not start over."""
        self._require(tokens >= job.tokens, f"tokens of {job.spec.id} fell from {job.tokens} to {tokens}")
        speed = self.scenario.models[job.spec.model]
        prefill = self._to_prefill(job)
        kept = job.spec.prompt_tokens + job.tokens - prefill
        decoded_at = self.run_started + prefill / speed.prefill_tps
        if tokens > job.tokens or finished:
            end = decoded_at + (tokens - job.tokens) / speed.decode_tps
            self._require(abs(end - t) < 1e-4, f"{job.spec.id} reaches {tokens} tokens at {end}, not {t}")
            job.kv_tokens = job.spec.prompt_tokens + tokens
        else:
            done = (t - self.run_started) * speed.prefill_tps
            chunk = self.config.prefill_chunk_tokens
            tolerance = 1e-4 * speed.prefill_tps
            on_chunk = abs(done - round(done / chunk) * chunk) <= tolerance and round(done / chunk) >= 1
            on_chunk = on_chunk and done <= prefill + tolerance
            self._require(
                prefill > 0 and (on_chunk or abs(done - prefill) <= tolerance),
                f"{job.spec.id} stops at {t}, no boundary: {done} of {prefill} prompt tokens",
            )
            job.kv_tokens = kept + min(prefill, round(done))
        job.fruitless_s = t - self.run_started if tokens == job.tokens else 0.0
        job.tokens, job.kv_epoch = tokens, self.epoch
        if self.stop_asked_at is not None:
            self._require(
                t - self.stop_asked_at <= self._delta(job.spec.model),
                f"{job.spec.id} stopped too late, at {t}",
            )

    def _close_run(self, t: float) -> None:
        job = self.running
        assert job is not None
        job.runs.append((self.run_started, t, self.run_tier))
        self.flow_service[self.run_flow] = self.flow_service.get(self.run_flow, 0.0) + t - self.run_started
        self.share.runs.append((self.run_started, t, job.spec.kind is LlmTaskKind.EXTRACT))
        self._settle(t)
        self.running, self.stop_asked_at = None, None

    def _end_caller(self, caller: str, how: str, job: Life | None = None) -> None:
        self._require(caller not in self.ends, f"{caller} ends twice: {self.ends.get(caller)}, {how}")
        self.ends[caller] = how
        if job is None:
            return
        job.callers.remove(caller)
        if job.callers:
            return
        if job.ever_ran:
            if not job.spec.ahead:
                self.serial += 1
                self.served[job.flow] = self.serial
            if job.spec.kind is LlmTaskKind.CHAT:
                self.chat_end = (job.spec.model, self.trace[self.index]["t"])
        job.state, job.ended_at = "ended", self.trace[self.index]["t"]
        del self.alive[job]
        if job.spec.kind in POOL:
            self.books.leave(job)
        if self.owed is job:
            self.owed = None

    def _drop_satisfied_switches(self) -> None:
        while self.switches and self.switches[0][0] == self.resident:
            self.switches.popleft()

    def _known(self, line: Line) -> Life:
        job = self.jobs.get(line["job"])
        self._require(job is not None and job.live, f"no such live job: {line}")
        assert job is not None
        self._require(line["job"] in job.callers, f"that caller is gone: {line}")
        self._job_fields(line, self.specs[line["job"]])
        return job

    def _on_device(self, line: Line) -> Life:
        job = self._known(line)
        self._require(job is self.running, f"it does not run: {line}")
        return job

    def _job_fields(self, line: Line, spec: SubmitSpec) -> None:
        told = (line["kind"], line["flow"], line["model"])
        self._require(told == (spec.kind.value, spec.flow, spec.model), f"kind, flow or model differ: {line}")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            self._fail(what)

    def _fail(self, what: str) -> NoReturn:
        lines = self.trace[max(0, self.index - 8) : self.index + 2]
        recent = "\n".join(json.dumps(line) for line in lines)
        raise Violation(f"{self.scenario.name}: record {self.index}: {what}\n{recent}")


def _is_chat(job: Life) -> bool:
    """One that somebody waits for."""
    return job.spec.kind is LlmTaskKind.CHAT and not job.spec.ahead


def _twin(first: SubmitSpec, second: SubmitSpec) -> bool:
    """Same work, so that one result serves both."""
    key = (first.coalesce_key, first.kind, first.model)
    return key == (second.coalesce_key, second.kind, second.model) and not first.ahead and not second.ahead


def check_format(trace: Sequence[Line]) -> None:
    """Section 11: names, fields, types, order of time, the summary last."""

    def require(holds: bool, what: str) -> None:
        if not holds:
            raise Violation(what)

    require(bool(trace) and trace[-1]["event"] == "summary", "the last record must be the summary")
    last = 0.0
    for line in trace:
        event, t = line["event"], line["t"]
        require(list(line)[:2] == ["t", "event"], f"t and event come first: {line}")
        require(isinstance(t, float) and t >= last, f"time goes back: {line}")
        last = t
        if event == "summary":
            require(line is trace[-1], "a summary before the end")
            continue
        fields: dict[str, Any] = dict(OTHER_EVENTS.get(event) or JOB_EVENTS.get(event) or {})
        require(event in OTHER_EVENTS or event in JOB_EVENTS, f"unknown event: {line}")
        if event in JOB_EVENTS:
            fields |= {"job": str, "kind": str, "flow": str, "tier": int, "model": str}
        for name, kinds in fields.items():
            require(name in line and isinstance(line[name], kinds), f"{name} is missing or odd: {line}")
        if event in JOB_EVENTS:
            require(0 <= line["tier"] <= 5, f"no such tier: {line}")


def check_trace(scenario: Scenario, trace: Sequence[Line]) -> TraceChecker:
    """Raises `Violation`. The replayed state is returned for properties of the whole run."""
    checker = TraceChecker(scenario, trace)
    checker.run()
    return checker
