"""What the scheduler replaces: one queue, and two lanes. Nothing is ever stopped for anything."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from data.scheduling.config import SchedulerConfig
from data.scheduling.events import SetForeground
from data.scheduling.heap import IndexedHeap
from data.scheduling.jobs import Job
from data.scheduling.policy import Choice, TierQueue
from data.scheduling.residence import Residence
from domain.entities.llm import LlmTaskKind

HIGH_LANE = frozenset({LlmTaskKind.CHAT, LlmTaskKind.NATARAJ})


def one_lane(kind: LlmTaskKind) -> int:
    """Everybody in one queue."""
    return 0


def two_lanes(kind: LlmTaskKind) -> int:
    """Chat and deck before all others, as in the queue that this scheduler replaced."""
    return 0 if kind in HIGH_LANE else 1


class FifoPolicy:
    """Implements `Policy`: the first of the best lane, on whatever model it wants, to its end."""

    def __init__(self, lane: Callable[[LlmTaskKind], int]) -> None:
        self._lane = lane
        self._jobs: IndexedHeap[Job] = IndexedHeap()
        self._foreground: tuple[LlmTaskKind, str | None] | None = None

    @property
    def foreground(self) -> tuple[LlmTaskKind, str | None] | None:
        return self._foreground

    def configure(self, config: SchedulerConfig) -> None:
        """There is nothing to tune."""

    def enter(self, job: Job, now: float) -> None:
        self.restore(job, now)

    def leave(self, job: Job, now: float) -> None:
        self.withdraw(job)

    def withdraw(self, job: Job) -> None:
        self._jobs.discard(job)

    def restore(self, job: Job, now: float) -> None:
        self._jobs.push(job, (self._lane(job.kind), job.arrival))

    def used(self, jobs: Sequence[Job], start: float, end: float) -> None:
        """Nobody's account is kept."""

    def caused_swap(self, job: Job, seconds: float) -> None:
        """Nobody's account is kept."""

    def set_foreground(self, event: SetForeground) -> None:
        self._foreground = None if event.kind is None else (event.kind, event.subject)

    def advance(self, now: float) -> bool:
        return False

    def choose(self, now: float, residence: Residence) -> Choice | None:
        first = self._jobs.first()
        return None if first is None else Choice(first, self.tier(first), "first in its lane")

    def preemption(self, running: Job, choice: Choice, now: float, residence: Residence) -> str | None:
        return None

    def tier(self, job: Job) -> int:
        return self._lane(job.kind)

    def next_change(self, now: float, running: Sequence[Job], residence: Residence) -> float | None:
        return None

    def order(
        self, residence: Residence, on_device: Collection[Job], most: int | None = None
    ) -> dict[int, TierQueue]:
        lanes: dict[int, list[Job]] = {}
        for job in self._jobs.ordered():
            if not job.on_device:
                lanes.setdefault(self._lane(job.kind), []).append(job)
        census = self.census(on_device)
        return {
            lane: TierQueue(jobs[:most], census[lane], [job for job in jobs if job.service_s])
            for lane, jobs in lanes.items()
        }

    def census(self, on_device: Collection[Job]) -> dict[int, Counter[tuple[LlmTaskKind, str]]]:
        found: dict[int, Counter[tuple[LlmTaskKind, str]]] = {}
        for job in self._jobs:
            if not job.on_device:
                found.setdefault(self._lane(job.kind), Counter())[job.kind, job.lead.model] += 1
        return dict(sorted(found.items()))

    def share(self, now: float, spent_s: float = 0.0, jobs: Iterable[Job] = ()) -> tuple[float, bool]:
        return 0.0, False

    def vruntimes(self) -> tuple[dict[LlmTaskKind, float], dict[str, float]]:
        return {}, {}
