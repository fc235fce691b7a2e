"""What a scheduling policy decides; the scheduler around it keeps the lives of the jobs."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from data.scheduling.config import SchedulerConfig
from data.scheduling.events import SetForeground
from data.scheduling.jobs import Job
from data.scheduling.residence import Residence
from domain.entities.llm import LlmTaskKind


@dataclass(frozen=True, slots=True)
class Choice:
    """Whom the policy would have on the device now."""

    by: Job
    """The job that was chosen; what runs is its lead."""
    tier: int
    reason: str
    due: bool = False
    """A foreign model's turn has come, so it may stop background work of a better tier."""

    @property
    def job(self) -> Job:
        return self.by.lead


@dataclass(frozen=True, slots=True)
class TierQueue:
    """Who waits in one tier."""

    first: list[Job]
    """In the order in which they would run."""
    counts: Counter[tuple[LlmTaskKind, str]]
    """All of them, those that are first included, by kind and by the model that is needed."""
    begun: list[Job]
    """Those that have had the device already."""

    @property
    def count(self) -> int:
        return self.counts.total()


class Policy(Protocol):
    """Live jobs, the running one included, are candidates until they end."""

    @property
    def foreground(self) -> tuple[LlmTaskKind, str | None] | None:
        """What the user looks at."""
        ...

    def configure(self, config: SchedulerConfig) -> None:
        """What was tuned holds from now on."""
        ...

    def enter(self, job: Job, now: float) -> None:
        """A job was accepted."""
        ...

    def leave(self, job: Job, now: float) -> None:
        """A job ended; `job.service_s` tells whether it ever ran."""
        ...

    def withdraw(self, job: Job) -> None:
        """Takes a job out of the candidates before its lead, hint, deadline or waiting time changes …"""
        ...

    def restore(self, job: Job, now: float) -> None:
        """… and puts it back after."""
        ...

    def used(self, jobs: Sequence[Job], start: float, end: float) -> None:
        """These jobs had the device, or one of its slots each."""
        ...

    def caused_swap(self, job: Job, seconds: float) -> None:
        """Loading the job's model took so long."""
        ...

    def set_foreground(self, event: SetForeground) -> None:
        """The surface changed."""
        ...

    def advance(self, now: float) -> bool:
        """Time passed; true if extract's share was used up, or became free again."""
        ...

    def choose(self, now: float, residence: Residence) -> Choice | None:
        """The best candidate, the running job being one of them; none if all must wait."""
        ...

    def preemption(self, running: Job, choice: Choice, now: float, residence: Residence) -> str | None:
        """Why `choice` may stop the running job; none if it may not."""
        ...

    def tier(self, job: Job) -> int:
        """The job's tier now, what waits for it considered."""
        ...

    def next_change(self, now: float, running: Sequence[Job], residence: Residence) -> float | None:
        """When the decision may change although nothing happens; none if never."""
        ...

    def order(
        self, residence: Residence, on_device: Collection[Job], most: int | None = None
    ) -> dict[int, TierQueue]:
        """Who is not on the device, by tier, the best tier first, as they would run as things stand.

        Only the first `most` of each tier are looked at, the rest are counted.
        """
        ...

    def census(self, on_device: Collection[Job]) -> dict[int, Counter[tuple[LlmTaskKind, str]]]:
        """How many are not on the device, by tier, the best first, then by kind and by the model that is needed."""
        ...

    def share(self, now: float, spent_s: float = 0.0, jobs: Iterable[Job] = ()) -> tuple[float, bool]:
        """Extract's share of busy time, and whether it is used up; `jobs` ran for `spent_s` since `used` was called."""
        ...

    def vruntimes(self) -> tuple[dict[LlmTaskKind, float], dict[str, float]]:
        """Of kinds and active flows, in seconds."""
        ...
