"""Any order of events keeps every invariant, and what is broken on purpose is noticed."""

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from data.scheduling import fair_pool, residence, uniun_policy
from data.scheduling import scheduler as scheduler_module
from data.scheduling.admission import Admission
from data.scheduling.config import SchedulerConfig
from data.scheduling.events import Cause, Outcome
from data.scheduling.inspection import InvariantBroken
from data.scheduling.jobs import IllegalTransition, Job, JobSpec, Phase
from data.scheduling.live_jobs import LiveJobs
from data.scheduling.policy import Choice
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind
from tests.data.scheduling.scheduler_driver import Broken, Driver

KINDS = (LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA, LlmTaskKind.API)
MODELS = ("X", "Y", "Z")
FLOWS = ("a", "b")
POLICIES = ("uniun", "fifo", "two-lane")

SLOTS = st.sampled_from(({}, {"X": 2}, {"X": 3, "Y": 2}, {"X": 4, "Y": 4, "Z": 4}))
"""Jobs of a model that run at once."""

seconds = st.sampled_from((0.0, 0.01, 0.5, 3.0, 12.0, 45.0, 130.0, 400.0))


class SchedulerMachine(RuleBasedStateMachine):
    """Hypothesis picks the events; `Driver` checks after each."""

    jobs: Bundle[str] = Bundle("jobs")

    @initialize(
        policy=st.sampled_from(POLICIES),
        slice_s=st.sampled_from((0.0, 1.0, 30.0)),
        small=st.booleans(),
        slots=SLOTS,
    )
    def start(self, policy: str, slice_s: float, small: bool, slots: dict[str, int]) -> None:
        limits = {"max_queued": 6, "max_queued_per_flow": 3, "max_wait_depth": 2} if small else {}
        config = SchedulerConfig(fair_slice_s=slice_s, **limits)
        self.driver = Driver(InferenceScheduler(config, policy=policy), slots=slots)
        self.serial = 0

    @rule(
        target=jobs,
        kind=st.sampled_from(KINDS),
        flow=st.sampled_from(FLOWS),
        model=st.sampled_from(MODELS),
        deadline=st.none() | st.sampled_from((-50.0, 0.0, 5.0, 60.0)),
        hint=st.booleans(),
        key=st.none() | st.sampled_from(("k", "l")),
        weight=st.sampled_from((0.5, 1.0, 4.0)),
        rank=st.sampled_from((0, 0, -1, 2)),
        keep=st.sampled_from((None, None, 0.0, 5.0)),
        ahead=st.booleans(),
    )
    def submit(
        self,
        kind: LlmTaskKind,
        flow: str,
        model: str,
        deadline: float | None,
        hint: bool,
        key: str | None,
        weight: float,
        rank: int,
        keep: float | None,
        ahead: bool,
    ) -> str:
        return self._submit(
            kind,
            flow,
            model,
            deadline,
            hint,
            key,
            weight,
            None,
            rank,
            keep,
            ahead and kind is LlmTaskKind.CHAT,
        )

    @rule(target=jobs, kind=st.sampled_from(KINDS), model=st.sampled_from(MODELS), other=jobs)
    def submit_waiting(self, kind: LlmTaskKind, model: str, other: str) -> str:
        return self._submit(kind, "a", model, None, False, None, 1.0, other)

    def _submit(
        self,
        kind: LlmTaskKind,
        flow: str,
        model: str,
        deadline: float | None,
        hint: bool,
        key: str | None,
        weight: float,
        waits_for: str | None,
        rank: int = 0,
        keep: float | None = None,
        ahead: bool = False,
    ) -> str:
        self.serial += 1
        name = f"j{self.serial}"
        at = None if deadline is None else self.driver.now + deadline
        self.driver.submit(
            JobSpec(name, kind, flow, model, at, hint, weight, key, waits_for, rank, keep, ahead)
        )
        return name

    @rule(job=consumes(jobs))
    def cancel(self, job: str) -> None:
        driver = self.driver
        before = dict(driver.on_device)
        alone = job not in driver.ended and job not in before and driver.specs[job].waits_for is None
        driver.cancel(job)
        if alone:
            # Where there are several slots another job may start, but nobody is disturbed.
            assert before.items() <= driver.on_device.items(), (
                "cancelling a queued job disturbed a running one"
            )

    @rule(kind=st.none() | st.sampled_from(KINDS), subject=st.none() | st.sampled_from(FLOWS))
    def surface(self, kind: LlmTaskKind | None, subject: str | None) -> None:
        self.driver.surface(kind, subject if kind else None)

    @rule(model=st.sampled_from(MODELS), force=st.booleans())
    def switch(self, model: str, force: bool) -> None:
        self.driver.switch(model, force=force)

    @rule()
    def reload(self) -> None:
        self.driver.reload()

    @rule(produced=st.integers(0, 50), finish=st.booleans(), which=st.integers(0, 3))
    def boundary(self, produced: int, finish: bool, which: int) -> None:
        self.driver.boundary(produced, finish=finish, which=which)

    @rule(which=st.integers(0, 3))
    def fail(self, which: int) -> None:
        self.driver.fail(which)

    @rule(ok=st.booleans())
    def loaded(self, ok: bool) -> None:
        self.driver.loaded(ok=ok)

    @rule()
    def engine_dies(self) -> None:
        self.driver.engine_dies()

    @rule(by=seconds)
    def advance(self, by: float) -> None:
        self.driver.advance(by)

    @invariant()
    def queue_limits_hold(self) -> None:
        if hasattr(self, "driver"):
            scheduler = self.driver.scheduler
            # Jobs that were put back may exceed the limit: they had been admitted before.
            assert scheduler.admission.waiting <= scheduler.config.max_queued + 1 + 8

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.drain()


def test_every_order_of_events_keeps_the_invariants() -> None:
    run_state_machine_as_test(
        SchedulerMachine,
        settings=settings(
            max_examples=150,
            stateful_step_count=60,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def soak(seed: int, steps: int = 400) -> None:
    """A seeded random walk over the same events; raises when anything is off."""
    rng = random.Random(seed)
    scheduler = InferenceScheduler(SchedulerConfig(fair_slice_s=rng.choice((0.0, 1.0, 30.0))))
    driver = Driver(scheduler, slots={} if seed % 2 else {"X": 2, "Y": 3})
    names: list[str] = []
    for _ in range(steps):
        act = rng.random()
        if act < 0.3:
            name = f"j{len(names)}"
            deadline = driver.now + rng.choice((-50, 5, 60)) if rng.random() < 0.2 else None
            waits = rng.choice(names) if names and rng.random() < 0.1 else None
            key = rng.choice("kl") if rng.random() < 0.1 else None
            kind, flow, model = rng.choice(KINDS), rng.choice(FLOWS), rng.choice(MODELS)
            names.append(name)
            driver.submit(JobSpec(name, kind, flow, model, deadline, rng.random() < 0.2, 1.0, key, waits))
        elif act < 0.35 and names:
            driver.cancel(rng.choice(names))
        elif act < 0.42:
            kind_or_none = rng.choice((None, *KINDS))
            driver.surface(kind_or_none, rng.choice((None, *FLOWS)) if kind_or_none else None)
        elif act < 0.45:
            driver.switch(rng.choice(MODELS), force=rng.random() < 0.5)
        elif act < 0.65:
            driver.boundary(rng.randrange(20), finish=rng.random() < 0.3, which=rng.randrange(4))
        elif act < 0.67:
            driver.fail(rng.randrange(4))
        elif act < 0.77:
            driver.loaded(ok=rng.random() < 0.9)
        elif act < 0.78:
            driver.engine_dies()
        else:
            driver.advance(rng.choice((0.01, 0.5, 3.0, 12.0, 45.0, 130.0)))
    driver.drain()


def soak_many() -> None:
    for seed in range(25):
        soak(seed)


def test_the_walk_finds_nothing_wrong_in_the_scheduler_as_it_is() -> None:
    soak_many()


# Faults, one of each kind, planted into the scheduler. The walk above must notice every one.

Plant = Callable[[pytest.MonkeyPatch], None]


def _patch(owner: object, name: str, make: Callable[[Callable[..., object]], Callable[..., object]]) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, make(getattr(owner, name)))

    return plant


def _loses_stopped_jobs(original: Callable[..., object]) -> Callable[..., object]:
    def put_back(self: LiveJobs, job: Job, line: str) -> None:
        self._policy.withdraw(job)
        job.phase = Phase.QUEUED
        self._admission.count(job.flow_key, len(job.callers))

    return put_back


def _starts_on_the_wrong_model(original: Callable[..., object]) -> Callable[..., object]:
    def load(self: InferenceScheduler, model: str, *rest: object) -> object:
        return original(self, "X", *rest)

    return load


def _restarts_from_nothing(original: Callable[..., object]) -> Callable[..., object]:
    def dispatch(self: InferenceScheduler, choice: Choice) -> None:
        choice.job.first_dispatch_at = None
        original(self, choice)

    return dispatch


def _answers_twice(original: Callable[..., object]) -> Callable[..., object]:
    def end_caller(
        self: LiveJobs,
        job: Job,
        caller: str,
        outcome: Outcome,
        cause: Cause = Cause.NONE,
        error: str = "",
    ) -> None:
        original(self, job, caller, outcome, cause, error)
        self._log.instruct(self._log.instructions[-1])

    return end_caller


def _starts_another_while_stopping(original: Callable[..., object]) -> Callable[..., object]:
    def stop(self: InferenceScheduler, job: Job, reason: str, by: str | None) -> None:
        original(self, job, reason, by)
        self.on_device.clear()

    return stop


def _forgets_waiters(original: Callable[..., object]) -> Callable[..., object]:
    return lambda self, ended: None


def _drops_jobs_of_other_models(original: Callable[..., object]) -> Callable[..., object]:
    def choose_background(self: uniun_policy.UniunPolicy, now: float, device: residence.Residence) -> object:
        return (
            self._best((device.model,), "local") if device.model is not None else original(self, now, device)
        )

    return choose_background


def _sets_no_timer(original: Callable[..., object]) -> Callable[..., object]:
    return lambda self: None


def _tokens_vanish(original: Callable[..., object]) -> Callable[..., object]:
    def count(self: InferenceScheduler, job: Job, tokens_done: int) -> None:
        job.tokens_done = max(0, tokens_done - 1)
        raise IllegalTransition("tokens fell", job) if tokens_done else AssertionError

    return count


def _negative_charge(original: Callable[..., object]) -> Callable[..., object]:
    return lambda self, job, seconds: original(self, job, -seconds)


def _lingers_for_ever(original: Callable[..., object]) -> Callable[..., object]:
    return lambda self, surface: float("inf") if self.model is not None else None


def _miscounts_the_queue(original: Callable[..., object]) -> Callable[..., object]:
    return lambda self, flow, change: original(self, flow, abs(change))


SCHEDULER, POLICY = scheduler_module.InferenceScheduler, uniun_policy.UniunPolicy
FAULTS: dict[str, Plant] = {
    "a stopped job is lost": _patch(LiveJobs, "put_back", _loses_stopped_jobs),
    "the wrong model is loaded": _patch(SCHEDULER, "_load", _starts_on_the_wrong_model),
    "a resumed job counts as new": _patch(SCHEDULER, "_dispatch", _restarts_from_nothing),
    "an answer is given twice": _patch(LiveJobs, "end_caller", _answers_twice),
    "another job starts before the first has stopped": _patch(
        SCHEDULER, "_stop", _starts_another_while_stopping
    ),
    "jobs that waited for another are forgotten": _patch(LiveJobs, "_free_waiters", _forgets_waiters),
    "foreign jobs never get their model": _patch(POLICY, "_choose_background", _drops_jobs_of_other_models),
    "no timer is set": _patch(SCHEDULER, "_set_timer", _sets_no_timer),
    "produced tokens vanish": _patch(SCHEDULER, "_count_tokens", _tokens_vanish),
    "vruntime runs backwards": _patch(fair_pool.FairPool, "charge", _negative_charge),
    "a model lingers for ever": _patch(residence.Residence, "linger_until", _lingers_for_ever),
    "the queue is miscounted": _patch(Admission, "count", _miscounts_the_queue),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    with pytest.raises((Broken, InvariantBroken, IllegalTransition, ValueError, KeyError, AttributeError)):
        soak_many()
