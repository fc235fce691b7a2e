"""What may be tuned in the scheduling policy, with the defaults of docs/scheduler.md."""

from typing import Annotated

from pydantic import Field, model_validator

from domain.entities.entity import Entity
from domain.entities.llm import LlmTaskKind

LIVE = ("fair_slice_s", "extract_share", "extract_resume_share", "linger_surface_s")
"""Fields that users tune while the scheduler runs."""

Weight = Annotated[float, Field(ge=0.001, le=1000)]
# Beyond these, sums and products of times leave the range of numbers.
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Period = Annotated[float, Field(ge=0.001, le=1e9)]
Fraction = Annotated[float, Field(ge=1e-6, le=1)]


class SchedulerConfig(Entity):
    """Times in seconds, shares as fractions of 1."""

    fair_slice_s: Seconds = 30.0
    """Device time that a fair-pool job may use before another flow takes over; 0 alternates at every boundary."""
    extract_share: Fraction = 0.60
    """Extract ranks T5 above this share of the window's busy time …"""
    extract_resume_share: Fraction = 0.57
    """… until it is below this one; without a gap the tiers would stop each other at every token."""
    share_window_s: Period = 300.0
    share_min_busy_s: Period = 60.0
    """Smallest denominator of the share, so that the first seconds after idling do not flap."""
    swap_fraction: Fraction = Field(default=0.1, lt=1)
    """Largest part of a backlogged device's time that goes into background swaps (ε)."""
    default_swap_cost_s: Period = 10.0
    """Assumed cost of a swap before the first measurement."""
    swap_cost_alpha: Fraction = 0.3
    """Weight of the newest measurement in a model's moving average."""
    linger_factor: float = Field(default=2.0, ge=0, le=1e6)
    """After a chat its model stays for this many swap costs …"""
    linger_surface_s: Seconds = 300.0
    """… or for this long while the chat is what the user looks at."""
    halving_period_s: Period = 300.0
    max_queued: int = Field(default=10_000, ge=1)
    max_queued_per_flow: int = Field(default=1_000, ge=1)
    max_wait_depth: int = Field(default=100, ge=1)
    """Longest chain of jobs that wait for each other."""
    max_engine_losses: int = Field(default=3, ge=0)
    """How often a job resumes after the engine died under it before it fails."""
    kind_weights: dict[LlmTaskKind, Weight] = Field(default_factory=dict)
    flow_weights: dict[str, Weight] = Field(default_factory=dict)
    """Keyed `kind/flow`; goes before the weight that a job brings."""

    @model_validator(mode="after")
    def _gap(self) -> "SchedulerConfig":
        if self.extract_resume_share > self.extract_share:
            raise ValueError("extract_resume_share must not be above extract_share")
        return self
