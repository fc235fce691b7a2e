"""A job inside the scheduler: what was asked, and what has become of it."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from domain.entities.llm import LlmTaskKind

FlowKey: TypeAlias = tuple[LlmTaskKind, str]

STORY_LENGTH = 64


class Phase(Enum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    """Told to stop, not yet at a boundary. Nothing else may start."""
    ENDED = "ended"


class IllegalTransition(RuntimeError):
    """An event that the job's phase does not allow: a bug in whoever sent it. Carries the job's history."""

    def __init__(self, what: str, job: "Job") -> None:
        told = "; ".join(f"{at:.3f} {line}" for at, line in job.story)
        super().__init__(f"{what} for job {job.id}, which is {job.phase.value}. Its history: {told}")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One request for inference, as submitted. `deadline` in seconds of the scheduler's clock."""

    id: str
    kind: LlmTaskKind
    flow: str
    model: str
    deadline: float | None = None
    foreground_hint: bool = False
    weight: float = 1.0
    coalesce_key: str | None = None
    waits_for: str | None = None
    rank: int = 0
    """Order among the jobs of its flow, smallest first, before that of arrival."""
    keep_alive_s: float | None = None
    ahead: bool = False
    """A chat's prompt is read before its question is sent: nobody waits for it yet."""


@dataclass(slots=True, eq=False)
class Job:
    """One unit of work. Several callers share it when their requests were coalesced."""

    spec: JobSpec
    arrival: int
    submitted_at: float
    callers: dict[str, JobSpec]
    """Who still waits for the result, in order, and what each asked for. The first names the job in the trace."""
    phase: Phase = Phase.QUEUED
    hinted: bool = False
    deadline: float | None = None
    overdue: bool = False
    waiting_since: float = 0.0
    dispatched_at: float = 0.0
    """Start of the current run."""
    first_dispatch_at: float | None = None
    tokens_done: int = 0
    service_s: float = 0.0
    preemptions: int = 0
    engine_losses: int = 0
    cancelled: bool = False
    undisturbed_s: float = 0.0
    """A due model may not stop its next run before this: twice its last run, if that took most of the model's stay and
    brought no token. A swap drops the KV cache, so two models whose minimum stay is shorter than a prefill would stop
    each other for ever."""
    stop_reason: str = ""
    stop_forced: bool = False
    blocked_on: "Job | None" = None
    wait_depth: int = 0
    waiters: dict["Job", None] = field(default_factory=dict)
    """Jobs that wait for this one, in order of arrival."""
    story: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=STORY_LENGTH))
    lead: "Job" = field(init=False)
    """The job that runs when this one is chosen: itself, or the end of the chain of jobs it waits for."""

    def __post_init__(self) -> None:
        self.lead = self
        self.waiting_since = self.submitted_at
        self.hinted = self.spec.foreground_hint
        self.deadline = self.spec.deadline

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def told_as(self) -> str:
        """The job's name in the trace: its own id until that caller is gone, then another caller's."""
        return next(iter(self.callers), self.spec.id)

    @property
    def kind(self) -> LlmTaskKind:
        return self.spec.kind

    @property
    def model(self) -> str:
        return self.spec.model

    @property
    def is_chat(self) -> bool:
        """A chat that somebody waits for: first of all, and never put back."""
        return self.spec.kind is LlmTaskKind.CHAT and not self.spec.ahead

    @property
    def flow_key(self) -> FlowKey:
        return (self.spec.kind, self.spec.flow)

    @property
    def live(self) -> bool:
        return self.phase is not Phase.ENDED

    @property
    def on_device(self) -> bool:
        return self.phase is Phase.RUNNING or self.phase is Phase.STOPPING

    def join(self, spec: JobSpec) -> None:
        """One more caller; the more urgent wish counts."""
        self.callers[spec.id] = spec
        self.hinted = self.hinted or spec.foreground_hint
        if spec.deadline is not None:
            self.deadline = spec.deadline if self.deadline is None else min(self.deadline, spec.deadline)

    def tell(self, at: float, line: str) -> None:
        """Adds a line to the job's history."""
        self.story.append((at, line))
