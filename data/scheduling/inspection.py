"""Looks into a scheduler without changing it: the invariants, and the snapshot that people see."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from data.scheduling.jobs import Job, Phase
from data.scheduling.policy import TierQueue
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import JobView, SchedulerSnapshot, SwitchView

MOST_VIEWS = 100
"""Jobs of a tier that a snapshot shows one by one."""
ASSUMED_SERVICE_S = 5.0
"""What a job of a kind is taken to need before one of it has finished."""
_YET = 0.25
"""Of the time that a job has had: it needs so much more at least."""


class InvariantBroken(AssertionError):
    """The scheduler is in a state that docs/scheduler.md, section 8, rules out."""


def check(scheduler: InferenceScheduler) -> None:
    """Verifies what can be seen of the invariants at one moment; the rest are properties of whole traces."""
    _device(scheduler)
    _work_conserving(scheduler)
    _books(scheduler)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvariantBroken(what)


def _device(scheduler: InferenceScheduler) -> None:
    on_device = [job for job in scheduler.jobs.values() if job.on_device]
    known = scheduler.on_device
    _require(
        set(on_device) == set(known.values()) and all(known[job.id] is job for job in on_device),
        "more or other jobs run than those on the device",
    )
    _require(len(on_device) <= scheduler.residence.slots, "more jobs run than there are slots")
    _require(not on_device or scheduler.loading is None, "a job runs while a model is being loaded")
    for job in on_device:
        _require(job.model == scheduler.residence.model, f"{job.id} runs while its model is not resident")
        _require(job.blocked_on is None, f"{job.id} runs although it waits for another job")


def _work_conserving(scheduler: InferenceScheduler) -> None:
    if scheduler.loading is not None or not scheduler.jobs:
        return
    if scheduler.on_device:
        _slots_used(scheduler)
        return
    surface = scheduler.policy.foreground
    linger = scheduler.residence.linger_until(surface[0] if surface else None)
    _require(
        linger is not None and scheduler.now < linger,
        "the device idles although jobs wait and nothing lingers",
    )
    _require(scheduler.wake_at is not None, "the device idles and no timer is set")
    local = [job.id for job in scheduler.jobs.values() if job.lead.model == scheduler.residence.model]
    _require(not local, f"the device idles although {local[:3]} could run on the resident model")


def _slots_used(scheduler: InferenceScheduler) -> None:
    """A slot stays free only if nobody can use it, or the model is about to go; or until the timer that is due now."""
    if len(scheduler.on_device) == scheduler.residence.slots or scheduler.switches or scheduler.outdated:
        return
    best = scheduler.best()
    if best[0].job.model == scheduler.residence.model and scheduler.wake_at != scheduler.now:
        idle = [choice.job.id for choice in best if not choice.job.on_device]
        _require(not idle, f"a slot is free although {idle[:3]} could use it")


def _books(scheduler: InferenceScheduler) -> None:
    waiting = 0
    for job in scheduler.jobs.values():
        _require(job.live, f"{job.id} is kept although it has ended")
        _require(bool(job.callers), f"{job.id} is alive but nobody waits for it")
        _require(all(scheduler.callers.get(c) is job for c in job.callers), f"callers of {job.id} are lost")
        root = job
        for _ in range(len(scheduler.jobs)):
            if root.blocked_on is None:
                break
            root = root.blocked_on
        _require(root.live and job.lead is root, f"{job.id} follows {job.lead.id}, not {root.id}")
        if job.phase is Phase.QUEUED:
            waiting += len(job.callers)
    _require(waiting == scheduler.admission.waiting, "the count of waiting callers is off")
    _require(
        len(scheduler.callers) == sum(len(j.callers) for j in scheduler.jobs.values()),
        "callers without a job",
    )
    census = scheduler.policy.census(scheduler.on_device.values())
    counted = Counter(
        (scheduler.policy.tier(job), job.kind, job.lead.model)
        for job in scheduler.jobs.values()
        if not job.on_device
    )
    _require(
        counted == {(tier, *key): count for tier, counts in census.items() for key, count in counts.items()},
        f"the census says {census} and the jobs {counted}",
    )
    share, _ = scheduler.policy.share(scheduler.now)
    _require(-1e-9 <= share <= 1 + 1e-9, f"extract's share is {share}")
    kinds, flows = scheduler.policy.vruntimes()
    _require(all(v >= 0 for v in (*kinds.values(), *flows.values())), "a vruntime is negative")


@dataclass(frozen=True, slots=True)
class Gauges:
    """What monitoring asks of this moment."""

    queued: dict[tuple[LlmTaskKind, int], int]
    """Jobs by kind and tier."""
    running: int
    extract_share: float
    extract_share_limit: float
    extract_exhausted: bool
    engine_restarts: int


def gauges(scheduler: InferenceScheduler, now: float) -> Gauges:
    """At `now`, not before the last event."""
    queued: Counter[tuple[LlmTaskKind, int]] = Counter()
    for tier, counts in scheduler.policy.census(scheduler.on_device.values()).items():
        for (kind, _), count in counts.items():
            queued[kind, tier] += count
    share, exhausted = scheduler.policy.share(now, now - scheduler.now, scheduler.on_device.values())
    return Gauges(
        queued=dict(queued),
        running=len(scheduler.on_device),
        extract_share=share,
        extract_share_limit=scheduler.config.extract_share,
        extract_exhausted=exhausted,
        engine_restarts=scheduler.totals.engine_losses,
    )


def snapshot(
    scheduler: InferenceScheduler,
    now: float,
    tokens_done: Mapping[str, int] | None = None,
    most: int = MOST_VIEWS,
) -> SchedulerSnapshot:
    """The state at `now` (not before the last event); `tokens_done` has the running jobs' counts so far.

    At most `most` jobs of each tier are put in order and shown; those behind are counted, and their time is reckoned with.
    """
    tokens_done = tokens_done or {}
    running = [
        _view(scheduler, job, now, 0, 0.0, tokens_done.get(job.id)) for job in scheduler.on_device.values()
    ]
    tiers: dict[int, list[JobView]] = {}
    waiting = queue(scheduler, most)
    for job, position, start_s in forecast(scheduler, now, waiting):
        view = _view(scheduler, job, now, position, start_s, None)
        tiers.setdefault(view.tier, []).append(view)
    share, exhausted = scheduler.policy.share(now, now - scheduler.now, scheduler.on_device.values())
    kinds, flows = _vruntimes(scheduler, now)
    surface, loading = scheduler.policy.foreground, scheduler.loading
    return SchedulerSnapshot(
        at=now,
        resident=scheduler.residence.model,
        loading=loading.model if loading is not None else None,
        foreground=surface,
        running=running[0] if running else None,
        also_running=tuple(running[1:]),
        tiers={tier: tuple(views) for tier, views in tiers.items()},
        queued={tier: their.count for tier, their in waiting.items()},
        switches=tuple(SwitchView(model=s.model, force=s.force) for s in scheduler.switches),
        kind_vruntime_s=kinds,
        flow_vruntime_s=flows,
        extract_share=share,
        extract_exhausted=exhausted,
        extract_share_limit=scheduler.config.extract_share,
        extract_share_resume=scheduler.config.extract_resume_share,
        loading_s=now - loading.started_at if loading is not None else None,
        loading_expected_s=scheduler.residence.cost(loading.model) if loading is not None else None,
        swap_cost_s=scheduler.residence.costs(),
        linger_until=scheduler.residence.linger_until(surface[0] if surface else None),
        last_reason=scheduler.last_reason,
        swaps=scheduler.totals.swaps,
        preemptions=scheduler.totals.preemptions,
    )


def queue(scheduler: InferenceScheduler, most: int | None = None) -> dict[int, TierQueue]:
    """Who waits, by tier; the first `most` of each in the order in which they would run."""
    return scheduler.policy.order(scheduler.residence, scheduler.on_device.values(), most)


def forecast(
    scheduler: InferenceScheduler, now: float, waiting: Mapping[int, TierQueue]
) -> Iterator[tuple[Job, int, float]]:
    """The first jobs of each tier in the order in which they would run as things stand, each with its position among all
    that wait, and in how many seconds it would start.

    Every job is taken to need what finished jobs of its kind needed on average, less what it has had; every model that
    is not loaded then, the usual cost of a swap. Nothing is known of jobs to come, so what ranks low starts later than
    said wherever more urgent work keeps arriving (docs/scheduler.md says how much later).
    """
    # When each slot is free, as far as can be guessed.
    free_s = [_expected(scheduler, job, now) for job in scheduler.on_device.values()]
    free_s += [0.0] * (scheduler.residence.slots - len(free_s))
    heapq.heapify(free_s)
    model = scheduler.loading.model if scheduler.loading is not None else scheduler.residence.model
    if scheduler.loading is not None:
        free_s = [max(0.0, scheduler.residence.cost(model or "") - (now - scheduler.loading.started_at))]
    position, last = 0, max(waiting, default=0)
    for tier, their in waiting.items():
        for place, job in enumerate(their.first, start=position + 1):
            if job.lead.model != model:
                model = job.lead.model
                free_s = [max(free_s) + scheduler.residence.cost(model)]
            yield job, place, free_s[0]
            heapq.heapreplace(free_s, free_s[0] + _expected(scheduler, job, now))
        position += their.count
        if tier != last and their.count > len(their.first):
            rest_s, model = _behind(scheduler, their, model)
            free_s = [at + rest_s / len(free_s) for at in free_s]


def _behind(scheduler: InferenceScheduler, their: TierQueue, model: str | None) -> tuple[float, str | None]:
    """Seconds that those of a tier need who were not put in order, with one swap to each of their models, and the model
    that is loaded after."""
    rest = their.counts - Counter((job.kind, job.lead.model) for job in their.first)
    mean_s = scheduler.totals.mean_service_s
    seconds = sum(count * mean_s.get(kind, ASSUMED_SERVICE_S) for (kind, _), count in rest.items())
    shown = set(their.first)
    for job in their.begun:
        if job not in shown:
            seconds -= min(job.service_s, mean_s.get(job.kind, ASSUMED_SERVICE_S))
    models = dict.fromkeys([model, *(needed for _, needed in rest)])
    seconds += sum(scheduler.residence.cost(each) for each in models if each not in (None, model))
    return seconds, next(reversed(models))


def _vruntimes(
    scheduler: InferenceScheduler, now: float
) -> tuple[dict[LlmTaskKind, float], dict[str, float]]:
    """With what runs now charged up to `now`; the scheduler itself does that at its next event."""
    kinds, flows = scheduler.policy.vruntimes()
    spent, config = now - scheduler.now, scheduler.config
    for job in scheduler.on_device.values():
        flow = f"{job.kind}/{job.spec.flow}"
        if job.kind in kinds and flow in flows:
            kinds[job.kind] += spent / config.kind_weights.get(job.kind, 1.0)
            flows[flow] += spent / config.flow_weights.get(flow, job.spec.weight)
    return kinds, flows


def _expected(scheduler: InferenceScheduler, job: Job, now: float) -> float:
    """Seconds that it still needs: what is left of its kind's mean. The longer one has gone on beyond that, the longer it
    will yet, and never is it as good as over."""
    had_s = _service_s(scheduler, job, now)
    return max(scheduler.totals.mean_service_s.get(job.kind, ASSUMED_SERVICE_S) - had_s, had_s * _YET)


def _service_s(scheduler: InferenceScheduler, job: Job, now: float) -> float:
    """Up to `now`; the scheduler itself adds what runs at its next event."""
    return job.service_s + (now - scheduler.now if job.on_device else 0.0)


def _view(
    scheduler: InferenceScheduler,
    job: Job,
    now: float,
    position: int,
    start_s: float,
    tokens_done: int | None,
) -> JobView:
    state = "waiting" if job.blocked_on is not None else job.phase.value
    return JobView(
        id=job.id,
        kind=job.kind,
        flow=job.spec.flow,
        model=job.model,
        tier=scheduler.policy.tier(job),
        position=position,
        state=state,
        estimated_start_s=start_s,
        waited_s=now - job.waiting_since if job.phase is Phase.QUEUED else 0.0,
        tokens_done=job.tokens_done if tokens_done is None else max(tokens_done, job.tokens_done),
        service_s=_service_s(scheduler, job, now),
        preemptions=job.preemptions,
    )
