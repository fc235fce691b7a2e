"""What can be seen of the scheduler at one moment."""

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
    tiers: dict[int, tuple[JobView, ...]]
    """Queued jobs per tier, in order. Empty tiers are left out."""
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
