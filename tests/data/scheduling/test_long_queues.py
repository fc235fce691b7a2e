"""Looking at a long queue: only what is shown is put in order, and what is shown is what a whole ordering would show."""

from collections import Counter
from random import Random

import pytest

from data.scheduling import events as ev
from data.scheduling.config import SchedulerConfig
from data.scheduling.fair_pool import POOL_KINDS
from data.scheduling.inspection import queue, snapshot
from data.scheduling.jobs import Job, JobSpec
from data.scheduling.scheduler import InferenceScheduler
from data.scheduling.uniun_policy import T1, T3, T4, UniunPolicy
from domain.entities.llm import LlmTaskKind

KINDS = [LlmTaskKind.EXTRACT, LlmTaskKind.GANA, LlmTaskKind.NATARAJ, LlmTaskKind.API, LlmTaskKind.CHAT]
ALL = 1_000_000


def crowd(seed: int, *, models: tuple[str, ...] = ("X",), ranks: bool = False) -> InferenceScheduler:
    """Some hundred jobs of everything that a queue may hold, some of them served already."""
    rng = Random(seed)
    scheduler = InferenceScheduler(resident="X")
    for n in range(400):
        kind = rng.choice(KINDS[: 4 if rng.random() < 0.9 else 5])
        spec = JobSpec(
            id=f"j{n}",
            kind=kind,
            flow=f"f{rng.randrange(6)}",
            model=rng.choice(models),
            deadline=rng.choice([None, None, rng.uniform(0, 100)]),
            foreground_hint=rng.random() < 0.1,
            waits_for=rng.choice([None, None, None, f"j{rng.randrange(n)}"]) if n else None,
            rank=rng.randrange(3) if ranks else 0,
            ahead=kind is LlmTaskKind.CHAT and rng.random() < 0.5,
        )
        at = n * 0.1
        scheduler.handle(ev.Submit(at, spec))
        if n % 9 == 0 and scheduler.running is not None:
            scheduler.handle(ev.Completed(at, scheduler.running.id, 5))
    surface = rng.choice([None, *KINDS[:4]])
    scheduler.handle(ev.SetForeground(50.0, surface, rng.choice([None, "f1"]) if surface else None))
    return scheduler


def by_the_book(scheduler: InferenceScheduler) -> list[Job]:
    """The order of docs/scheduler.md, sorted job by job."""
    policy = scheduler.policy
    assert isinstance(policy, UniunPolicy)
    jobs = [job for job in scheduler.jobs.values() if not job.on_device]
    turn: dict[Job, int] = {}
    turns: Counter[object] = Counter()
    for job in sorted(jobs, key=lambda job: (job.spec.rank, job.arrival)):
        turn[job] = turns[job.flow_key]
        turns[job.flow_key] += 1

    def key(job: Job) -> tuple[float, ...]:
        tier = policy.tier(job)
        foreign = float(tier > T1 and job.lead.model != scheduler.residence.model)
        if tier <= T1:
            return (tier, foreign, turn[job], policy._served.last(job.flow_key), job.arrival)
        if tier == T3:
            return (tier, foreign, job.deadline or 0.0, job.arrival)
        if tier == T4 and job.kind in POOL_KINDS:
            return (tier, foreign, turn[job], *policy._pool.key(job))
        return (tier, foreign, job.arrival)

    return sorted(jobs, key=key)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_of_each_tier_are_those_of_the_whole_order(seed: int) -> None:
    scheduler = crowd(seed, models=("X", "Y", "Z") if seed % 2 else ("X",), ranks=seed % 3 == 0)
    book = by_the_book(scheduler)
    assert [job for their in queue(scheduler).values() for job in their.first] == book
    few, whole = snapshot(scheduler, 60.0, most=7), snapshot(scheduler, 60.0, most=ALL)
    assert few.queued == whole.queued == dict(sorted(Counter(map(scheduler.policy.tier, book)).items()))
    places = {job.id: place for place, job in enumerate(book, start=1)}
    for tier, jobs in few.tiers.items():
        assert [job.id for job in jobs] == [job.id for job in whole.tiers[tier][:7]]
        assert [job.position for job in jobs] == [places[job.id] for job in jobs]


@pytest.mark.parametrize("seed", range(5))
def test_the_time_of_those_that_are_not_shown_is_reckoned_with(seed: int) -> None:
    scheduler = crowd(seed)
    few, whole = snapshot(scheduler, 60.0, most=7), snapshot(scheduler, 60.0, most=ALL)
    for tier, jobs in few.tiers.items():
        starts = [job.estimated_start_s for job in whole.tiers[tier][:7]]
        assert [job.estimated_start_s for job in jobs] == pytest.approx(starts)


def test_of_ten_thousand_only_some_are_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = InferenceScheduler(SchedulerConfig(max_queued_per_flow=10_000), resident="X")
    for n in range(10_000):
        kind = LlmTaskKind.EXTRACT if n % 2 else LlmTaskKind.GANA
        scheduler.handle(ev.Submit(n * 1e-3, JobSpec(id=f"j{n}", kind=kind, flow=f"f{n % 50}", model="X")))
    looks: Counter[str] = Counter()
    tier = scheduler.policy.tier

    def counted(job: Job) -> int:
        looks["tier"] += 1
        return tier(job)

    monkeypatch.setattr(scheduler.policy, "tier", counted)
    view = snapshot(scheduler, 20.0, most=50)
    assert sum(view.queued.values()) == 9_999
    assert looks["tier"] < 300  # one for each group that is alike, one for each job that is shown
