"""What can be seen of the scheduler: its state at one moment, what ran in the last minutes, and counters for monitoring.

Times are seconds of the scheduler's own clock, which has no date; `History.now` ties it to the calendar.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from domain.entities.entity import Entity
from domain.entities.llm import LlmTaskKind


class JobView(Entity):
    """One queued or running job."""

    id: str
    kind: LlmTaskKind
    flow: str
    model: str
    tier: int
    """-1 … 5, smaller is sooner."""
    position: int
    """0 for the running job, then 1, 2, … in the order in which they would run as things stand now."""
    state: str
    """queued, waiting (for another job), running or stopping."""
    estimated_start_s: float
    """Seconds from now; an estimate."""
    waited_s: float
    tokens_done: int
    service_s: float
    preemptions: int
    max_tokens: int | None = None
    """The longest answer that was asked for."""
    prompt_tokens: int | None = None
    """None until the engine has counted them."""
    prefilled_tokens: int | None = None
    """Of the prompt, and of what was produced before a stop; this run, as far as it is known."""


class SwitchView(Entity):
    """A queued request to change the resident model."""

    model: str
    force: bool


class SchedulerSnapshot(Entity):
    """The scheduler's whole state in plain values; times in seconds of the scheduler's own clock."""

    at: float
    resident: str | None
    loading: str | None
    foreground: tuple[LlmTaskKind, str | None] | None
    running: JobView | None
    also_running: tuple[JobView, ...] = ()
    """Where more than one job runs at once: the others, those of remote models included."""
    tiers: dict[int, tuple[JobView, ...]]
    """Queued jobs per tier, in order, the first 100 of each. Empty tiers are left out."""
    switches: tuple[SwitchView, ...]
    kind_vruntime_s: dict[LlmTaskKind, float]
    flow_vruntime_s: dict[str, float]
    """Keyed `kind/flow`; active flows only."""
    extract_share: float
    extract_exhausted: bool
    swap_cost_s: dict[str, float]
    linger_until: float | None
    last_reason: str
    """Why the last decision fell."""
    swaps: int
    preemptions: int
    queued: dict[int, int] = Field(default_factory=dict)
    """How many jobs wait in each tier, all of them."""
    extract_share_limit: float = 0.6
    """Above it extract ranks last …"""
    extract_share_resume: float = 0.57
    """… until it is below this."""
    loading_s: float | None = None
    """How long the load has taken so far …"""
    loading_expected_s: float | None = None
    """… and will take in all, going by the loads before; an estimate."""


class TraceRecord(Entity):
    """One line of the trace, as docs/scheduler.md lists them. `serial` counts them from 1 and never repeats."""

    type: Literal["record"] = "record"
    serial: int
    t: float
    event: str
    fields: dict[str, Any]


class MissedRecords(Entity):
    """The reader was slower than the scheduler, so `missed` records before the next one were dropped."""

    type: Literal["missed"] = "missed"
    missed: int


SchedulerChange = TraceRecord | MissedRecords


class RunSpan(Entity):
    """One uninterrupted stay of a job on the device."""

    job: str
    kind: LlmTaskKind
    flow: str
    model: str
    tier: int
    """At the start."""
    start: float
    end: float | None
    """None while it runs."""
    resumed: bool
    reason: str
    """Why it was started."""
    how: Literal["running", "finished", "preempted", "cancelled", "failed", "lost"]
    """How it ended; `lost` with the engine, to be resumed."""
    tokens: int | None
    """Produced over all runs so far; none where the trace does not tell."""
    by: str | None
    """The job, or `model_switch`, that it gave way to."""
    why: str
    """Why it was stopped."""


class SwapSpan(Entity):
    """One change of the resident model."""

    old: str | None
    new: str
    start: float
    end: float | None
    trigger: str
    """The job that it was done for, or `model_switch`."""
    reason: str
    ok: bool | None
    """None while it goes on."""


class Decision(Entity):
    """Why the device was put to another use."""

    at: float
    what: Literal["start", "resume", "stop", "swap", "unload"]
    job: str
    kind: LlmTaskKind
    flow: str
    model: str
    reason: str
    by: str | None
    """For a stop: the job, or `model_switch`, that it makes way for. For a swap: what is unloaded."""
    by_kind: LlmTaskKind | None
    """For a stop."""


class History(Entity):
    """What the device did since `since`, oldest first."""

    at: float
    now: datetime
    """The wall clock at `at`."""
    since: float
    """Nothing older is kept; later than the length of the window when there was more than can be kept."""
    runs: tuple[RunSpan, ...]
    swaps: tuple[SwapSpan, ...]
    decisions: tuple[Decision, ...]


class Histogram(Entity):
    """Counts by upper bound, as Prometheus wants them: `counts[i]` values were at most `bounds_s[i]`, cumulatively."""

    bounds_s: tuple[float, ...]
    counts: tuple[int, ...]
    count: int
    """Of all values, those above the last bound included."""
    sum_s: float


class QueueMetrics(Entity):
    """Of one kind in one tier. A job's tier can change; it is counted in the one that it had at that moment."""

    kind: LlmTaskKind
    tier: int
    queued: int
    """Jobs that wait now."""
    wait: Histogram
    """Submission to first dispatch, by the tier at dispatch."""
    first_token: Histogram
    """Submission to first token, by the tier at that moment."""
    preemptions: int
    """Times that such a job gave way, by the tier that it then had."""


class KindMetrics(Entity):
    """Counters of one kind since the start."""

    kind: LlmTaskKind
    submitted: int
    finished: int
    cancelled: int
    failed: int
    rejected: int
    tokens: int
    """Produced, those of jobs that did not finish included."""
    service_s: float
    """Device seconds of runs that have ended."""


class SchedulerMetrics(Entity):
    """For monitoring. Everything but queue lengths and shares only ever grows."""

    queues: tuple[QueueMetrics, ...]
    kinds: tuple[KindMetrics, ...]
    running: int
    """Jobs on the device now."""
    swaps: int
    swap_s: float
    swaps_failed: int
    preemptions: int
    extract_share: float
    extract_share_limit: float
    extract_exhausted: bool
    engine_restarts: int
    """Times that the engine process was lost and replaced."""
