"""Looking at a long queue: only what is shown is put in order, and what is shown is what a whole ordering would show."""

from collections import Counter
from random import Random

import pytest

from data.scheduling import events as ev
from data.scheduling import waits as waits_module
from data.scheduling.config import SchedulerConfig
from data.scheduling.fair_pool import POOL_KINDS
from data.scheduling.inspection import gauges, queue, snapshot
from data.scheduling.jobs import Job, JobSpec
from data.scheduling.scheduler import InferenceScheduler
from data.scheduling.uniun_policy import T1, T3, T4, UniunPolicy
from data.scheduling.waits import Waits
from domain.entities.llm import LlmTaskKind

EXTRACT, API = LlmTaskKind.EXTRACT, LlmTaskKind.API
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
    surface = rng.choice([None, *KINDS])
    scheduler.handle(ev.SetForeground(50.0, surface, rng.choice([None, "f1", "f2"]) if surface else None))
    return scheduler


def by_the_book(scheduler: InferenceScheduler) -> list[Job]:
    """The order of docs/scheduler.md: every job's place reckoned, and all of them sorted."""
    policy = scheduler.policy
    assert isinstance(policy, UniunPolicy)
    jobs = [job for job in scheduler.jobs.values() if not job.on_device]
    turn: dict[Job, int] = {}
    turns: Counter[object] = Counter()
    for job in sorted(jobs, key=lambda job: (job.spec.rank, job.arrival)):
        tier = policy.tier(job)
        flow = (tier, job.flow_key, job.lead.model if tier == T4 else None)
        raised = tier != policy._own_tier(job)
        turn[job] = 0 if raised else turns[flow]
        turns[flow] += not raised

    def key(job: Job) -> tuple[float, ...]:
        tier = policy.tier(job)
        foreign = float(tier > T1 and job.lead.model != scheduler.residence.model)
        if tier <= T1:
            return (tier, turn[job], policy._served.last(job.flow_key), job.arrival)
        if tier == T3:
            return (tier, foreign, job.deadline or 0.0, job.arrival)
        if tier == T4 and job.kind in POOL_KINDS:
            return (tier, foreign, turn[job], *policy._pool.key(job))
        if tier == T4:
            return (tier, foreign, 0, 0, 0, job.arrival)
        return (tier, foreign, job.arrival)

    return sorted(jobs, key=key)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_of_each_tier_are_those_of_the_whole_order(seed: int) -> None:
    scheduler = crowd(seed, models=("X", "Y", "Z") if seed % 2 else ("X",), ranks=seed % 3 == 0)
    book = by_the_book(scheduler)
    assert [job for their in queue(scheduler).values() for job in their.first] == book
    whole = snapshot(scheduler, 60.0, most=ALL)
    places = {job.id: place for place, job in enumerate(book, start=1)}
    for most in (1, 3, 7, 40):
        few = snapshot(scheduler, 60.0, most=most)
        assert few.queued == whole.queued == dict(sorted(Counter(map(scheduler.policy.tier, book)).items()))
        for tier, jobs in few.tiers.items():
            assert [job.id for job in jobs] == [job.id for job in whole.tiers[tier][:most]]
            assert [job.position for job in jobs] == [places[job.id] for job in jobs]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_counted_is_what_there_is(seed: int) -> None:
    scheduler = crowd(seed, models=("X", "Y", "Z") if seed % 2 else ("X",))
    for surface, subject in ((None, None), (EXTRACT, "f2"), (API, None), (API, "f1"), (API, "nobody's")):
        scheduler.handle(ev.SetForeground(50.0, surface, subject))
        plain = Counter((job.kind, scheduler.policy.tier(job)) for job in by_the_book(scheduler))
        assert gauges(scheduler, 50.0).queued == plain


@pytest.mark.parametrize("seed", range(10))
def test_a_caller_is_told_its_place_or_how_many_go_before_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits_module, "MOST_PLACES", 30)
    scheduler = crowd(seed, models=("X", "Y") if seed % 2 else ("X",))
    book = by_the_book(scheduler)
    waits = Waits(scheduler, lambda: 60.0)
    told = {job: waits.of(job.told_as) for job in book}
    exact = [job for job, waiting in told.items() if waiting is not None and not waiting.at_least]
    assert len(exact) >= 60
    for place, (job, waiting) in enumerate(told.items(), start=1):
        assert waiting is not None
        if waiting.at_least:
            assert waiting.position <= place
            assert waiting.estimated_start_s is None
            ahead = [before for before in book[: place - 1] if of_one_tier(scheduler, before, job)]
            assert len(ahead) >= 30
        else:
            assert waiting.position == place


def of_one_tier(scheduler: InferenceScheduler, one: Job, other: Job) -> bool:
    """Whether they are of one tier."""
    return scheduler.policy.tier(one) == scheduler.policy.tier(other)


def test_who_comes_later_or_is_put_back_is_told_its_own_place_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits_module, "MOST_PLACES", 10)
    scheduler = InferenceScheduler(resident="X")
    for n in range(50):
        scheduler.handle(ev.Submit(0.0, JobSpec(id=f"a{n}", kind=API, flow="a", model="X")))
    waits = Waits(scheduler, lambda: scheduler.now)
    last = waits.of("a49")
    assert last is not None
    assert (last.position, last.at_least) == (11, True)
    assert last.reason == "api (a) runs, 10 or more before it"
    scheduler.handle(ev.Submit(0.1, JobSpec(id="b", kind=API, flow="b", model="X")))
    new = waits.of("b")
    assert new is not None
    assert (new.position, new.at_least) == (2, False)
    running = scheduler.running
    assert running is not None
    scheduler.handle(ev.Submit(0.2, JobSpec(id="c", kind=LlmTaskKind.CHAT, flow="c", model="X")))
    scheduler.handle(ev.Stopped(0.2, running.id, 0))
    back = waits.of(running.id)
    assert back is not None
    assert not back.at_least


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
