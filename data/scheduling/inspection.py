"""Looks into a scheduler without changing it: the invariants, and the snapshot that people see."""

from collections import Counter
from dataclasses import dataclass

from data.scheduling.jobs import Job, Phase
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import JobView, SchedulerSnapshot, SwitchView

ASSUMED_SERVICE_S = 5.0
"""What a job of a kind is taken to need before one of it has finished."""


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
    running = scheduler.running
    _require(
        on_device == ([] if running is None else [running]),
        "more or other jobs run than the one on the device",
    )
    _require(running is None or scheduler.loading is None, "a job runs while a model is being loaded")
    if running is not None:
        _require(
            running.model == scheduler.residence.model, f"{running.id} runs while its model is not resident"
        )
        _require(running.blocked_on is None, f"{running.id} runs although it waits for another job")


def _work_conserving(scheduler: InferenceScheduler) -> None:
    if scheduler.running is not None or scheduler.loading is not None or not scheduler.jobs:
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
    jobs = scheduler.jobs.values()
    share, exhausted = scheduler.policy.share(now)
    return Gauges(
        queued=dict(Counter((j.kind, scheduler.policy.tier(j)) for j in jobs if not j.on_device)),
        running=sum(job.on_device for job in jobs),
        extract_share=share,
        extract_share_limit=scheduler.config.extract_share,
        extract_exhausted=exhausted,
        engine_restarts=scheduler.totals.engine_losses,
    )


def snapshot(scheduler: InferenceScheduler, now: float, tokens_done: int | None = None) -> SchedulerSnapshot:
    """The whole state at `now` (not before the last event); `tokens_done` is the running job's count so far."""
    running = scheduler.running
    running_view = None if running is None else _view(scheduler, running, now, 0, 0.0, tokens_done)
    queued = [job for job in scheduler.jobs.values() if job.phase is Phase.QUEUED]
    ordered = scheduler.policy.order(queued, scheduler.residence)
    ahead_s = 0.0 if running is None else max(0.0, _expected(scheduler, running))
    model = scheduler.loading.model if scheduler.loading is not None else scheduler.residence.model
    if scheduler.loading is not None:
        ahead_s = max(0.0, scheduler.residence.cost(model or "") - (now - scheduler.loading.started_at))
    tiers: dict[int, list[JobView]] = {}
    for position, job in enumerate(ordered, start=1):
        if job.lead.model != model:
            model = job.lead.model
            ahead_s += scheduler.residence.cost(model)
        view = _view(scheduler, job, now, position, ahead_s, None)
        tiers.setdefault(view.tier, []).append(view)
        ahead_s += max(0.0, _expected(scheduler, job))
    share, exhausted = scheduler.policy.share(now)
    kinds, flows = scheduler.policy.vruntimes()
    surface = scheduler.policy.foreground
    return SchedulerSnapshot(
        at=now,
        resident=scheduler.residence.model,
        loading=scheduler.loading.model if scheduler.loading is not None else None,
        foreground=surface,
        running=running_view,
        tiers={tier: tuple(views) for tier, views in sorted(tiers.items())},
        switches=tuple(SwitchView(model=s.model, force=s.force) for s in scheduler.switches),
        kind_vruntime_s=kinds,
        flow_vruntime_s=flows,
        extract_share=share,
        extract_exhausted=exhausted,
        swap_cost_s=scheduler.residence.costs(),
        linger_until=scheduler.residence.linger_until(surface[0] if surface else None),
        last_reason=scheduler.last_reason,
        swaps=scheduler.totals.swaps,
        preemptions=scheduler.totals.preemptions,
    )


def _expected(scheduler: InferenceScheduler, job: Job) -> float:
    return scheduler.totals.mean_service_s.get(job.kind, ASSUMED_SERVICE_S) - job.service_s


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
        service_s=job.service_s,
        preemptions=job.preemptions,
    )
