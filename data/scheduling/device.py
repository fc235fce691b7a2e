"""What the scheduler notes about the device: swaps under way and asked for, and its counters."""

from dataclasses import dataclass, field

from data.scheduling.jobs import Job
from domain.entities.llm import LlmTaskKind


@dataclass(slots=True, eq=False)
class Switch:
    """A request to change the resident model; tier −1, never inference."""

    id: str
    model: str
    force: bool
    engine_losses: int = 0


@dataclass(slots=True)
class Loading:
    """A swap under way; caused by a job, or by a request for it."""

    model: str
    started_at: float
    job: Job | None
    switch: Switch | None
    unload_at: float | None = None
    """As it was before the model was loaded anew."""


@dataclass(slots=True)
class Totals:
    """Counters since the start; seconds and counts."""

    busy_s: float = 0.0
    swap_s: float = 0.0
    swaps: int = 0
    preemptions: int = 0
    engine_losses: int = 0
    mean_service_s: dict[LlmTaskKind, float] = field(default_factory=dict)
    """Moving average over finished jobs."""

    def served(self, job: Job) -> None:
        """The job finished."""
        mean = self.mean_service_s.get(job.kind, job.service_s)
        self.mean_service_s[job.kind] = 0.8 * mean + 0.2 * job.service_s
