"""The scheduler: one device, one job on it at a time or as many as its model has slots, every job to one end.

A state machine without I/O. Events go in, each with its time; instructions and trace records come out; `handle` is the
only method that changes anything. No clock, no asyncio, no randomness; ties go by arrival number. The shape follows
the worker state machine of dask/distributed (events, instructions, stories, validation).
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from data.scheduling import events as ev
from data.scheduling.admission import Admission
from data.scheduling.config import LIVE, SchedulerConfig
from data.scheduling.device import Loading, Switch, Totals
from data.scheduling.events import Cause, End, Outcome, Step
from data.scheduling.jobs import IllegalTransition, Job, Phase
from data.scheduling.live_jobs import LiveJobs
from data.scheduling.log import StepLog
from data.scheduling.policies import POLICIES
from data.scheduling.policy import Choice, Policy
from data.scheduling.residence import Residence
from domain.counting import counted
from domain.entities.llm import LlmTaskKind

SWITCH = LlmTaskKind.MODEL_SWITCH.value

LOOK_S = 0.02
"""Shortest time between two looks at jobs that run side by side: their vruntimes grow together and may never cross."""


class InferenceScheduler:
    """Drives one policy. Times are seconds of whatever clock the caller keeps; they must not go back."""

    def __init__(
        self,
        config: SchedulerConfig | None = None,
        *,
        policy: str = "uniun",
        resident: str | None = None,
        at: float = 0.0,
        slots: int = 1,
    ) -> None:
        """`slots` jobs can run at once on the model that is resident at the start."""
        self.config = config or SchedulerConfig()
        self.policy: Policy = POLICIES[policy](self.config)
        self.residence = Residence(self.config, resident, at, slots)
        self.totals = Totals()
        self.last_reason = "nothing has been asked for yet"
        self.now = at
        self.on_device: dict[str, Job] = {}
        """Running or stopping, by id, in the order of their start."""
        self.loading: Loading | None = None
        self.switches: deque[Switch] = deque()
        self.admission = Admission(self.config)
        self._accounted_to = at
        self.wake_at: float | None = None
        self.outdated = False
        """The resident model, or the one being loaded, is to be loaded anew."""
        self._look_again = False
        """The job just started was owed its turn; whoever outranks it takes over at its first boundary."""
        self._log = StepLog(self.policy)
        self._live = LiveJobs(self.policy, self.admission, self._log)
        self._handlers: dict[type, Callable[[Any], None]] = {
            ev.Submit: self._on_submit,
            ev.Cancel: self._on_cancel,
            ev.SetForeground: self._on_set_foreground,
            ev.Configure: self._on_configure,
            ev.SwitchModel: self._on_switch_model,
            ev.Reload: self._on_reload,
            ev.Stopped: self._on_stopped,
            ev.Completed: self._on_completed,
            ev.JobFailed: self._on_job_failed,
            ev.Loaded: self._on_loaded,
            ev.LoadFailed: self._on_load_failed,
            ev.EngineDied: self._on_engine_died,
            ev.Tick: self._on_tick,
        }

    def handle(self, event: ev.Event) -> Step:
        """Takes one event; returns all that follows. Raises `IllegalTransition` on one that cannot have happened."""
        if event.at < self.now:
            raise ValueError(f"{type(event).__name__} at {event.at} comes after {self.now}: time went back")
        self.now = event.at
        self._log.begin(self.now)
        self._account()
        if self.policy.advance(self.now):
            self._log.share()
        self._handlers[type(event)](event)
        self._decide()
        self._set_timer()
        return Step(tuple(self._log.instructions), tuple(self._log.records))

    @property
    def jobs(self) -> dict[str, Job]:
        """Live jobs by their own id."""
        return self._live.jobs

    @property
    def callers(self) -> dict[str, Job]:
        """Live jobs by the id of everybody who waits for their result."""
        return self._live.callers

    @property
    def running(self) -> Job | None:
        """The job on the device; of several the one that was started first."""
        return next(iter(self.on_device.values()), None)

    # -- events

    def _on_tick(self, event: ev.Tick) -> None:
        self.wake_at = None

    def _on_submit(self, event: ev.Submit) -> None:
        spec = event.job
        if any(switch.id == spec.id for switch in self.switches):
            raise ValueError(f"a request with the id {spec.id!r} is already live")
        self._live.take(spec)

    def _on_cancel(self, event: ev.Cancel) -> None:
        for switch in self.switches:
            if switch.id == event.id:
                self.switches.remove(switch)
                self._end_switch(switch, Outcome.CANCELLED)
                return
        job = self.callers.get(event.id)
        if job is None:
            return
        if len(job.callers) > 1:
            self._live.end_caller(job, event.id, Outcome.CANCELLED)
            return
        job.cancelled = True
        if job.phase is Phase.QUEUED:
            self._end(job, Outcome.CANCELLED)
        elif job.phase is Phase.RUNNING:
            self._stop(job, "cancelled by its caller", by=None)

    def _on_set_foreground(self, event: ev.SetForeground) -> None:
        self.policy.set_foreground(event)
        self._log.note("foreground", kind=event.kind, subject=event.subject)

    def _on_configure(self, event: ev.Configure) -> None:
        self.config = event.config
        self._log.note("configure", **event.config.model_dump(mode="json", include=set(LIVE)))
        for part in (self.policy, self.residence, self.admission):
            part.configure(event.config)
        if self.policy.advance(self.now):
            self._log.share()

    def _on_switch_model(self, event: ev.SwitchModel) -> None:
        if len(self.switches) >= self.config.max_queued_per_flow:
            limit = self.config.max_queued_per_flow
            waiting = counted(len(self.switches), "model switch waits", "model switches wait")
            error = f"{waiting} already, the limit is {limit}"
            self._log.instruct(
                End(event.id, event.id, Outcome.REJECTED, Cause.QUEUE_FULL, error, limit, len(self.switches))
            )
            return
        switch = Switch(event.id, event.model, event.force)
        if event.model == self.residence.model and not self.switches:
            self._end_switch(switch, Outcome.FINISHED)  # nothing to change, so nothing is stopped for it
        else:
            self.switches.append(switch)

    def _on_reload(self, event: ev.Reload) -> None:
        self.outdated = True

    def _on_stopped(self, event: ev.Stopped) -> None:
        job = self._of_device(event.job_id, "stopped", Phase.STOPPING)
        ran_s = self.now - job.dispatched_at
        fruitless = event.tokens_done == job.tokens_done and 2 * ran_s >= self.now - self.residence.since
        job.undisturbed_s = 2 * ran_s if fruitless else 0.0
        self._count_tokens(job, event.tokens_done)
        self._log.job("stopped", job, tokens_done=job.tokens_done)
        del self.on_device[job.id]
        if job.cancelled:
            self._end(job, Outcome.CANCELLED)
        elif job.stop_forced and job.is_chat:
            self._end(
                job, Outcome.FAILED, Cause.FORCED_SWITCH, "stopped by a forced model switch; send it again"
            )
        else:
            job.preemptions += 1
            self.totals.preemptions += 1
            self._live.put_back(job, f"stopped after {counted(job.tokens_done, 'token')}: {job.stop_reason}")

    def _on_completed(self, event: ev.Completed) -> None:
        job = self._of_device(event.job_id, "finished", Phase.RUNNING, Phase.STOPPING)
        self._count_tokens(job, event.tokens_done)
        del self.on_device[job.id]
        self.totals.served(job)
        self._end(job, Outcome.FINISHED)

    def _on_job_failed(self, event: ev.JobFailed) -> None:
        job = self._of_device(event.job_id, "failed", Phase.RUNNING, Phase.STOPPING)
        del self.on_device[job.id]
        self._end(job, Outcome.FAILED, Cause.JOB_ERROR, event.error)

    def _on_loaded(self, event: ev.Loaded) -> None:
        loading = self._finish_loading(event.model, "loaded")
        trigger = loading.job if loading.job is not None and loading.job.live else None
        self.residence.arrived(event.model, self.now, self.now - loading.started_at, trigger, event.slots)
        self.residence.unload_at = loading.unload_at
        if loading.switch is not None:
            self._end_switch(loading.switch, Outcome.FINISHED)

    def _on_load_failed(self, event: ev.LoadFailed) -> None:
        loading = self._finish_loading(event.model, "load failure")
        error = f"model {event.model} could not be loaded: {event.error}"
        for switch in [s for s in self.switches if s.model == event.model]:
            self.switches.remove(switch)
            self._end_switch(switch, Outcome.FAILED, Cause.LOAD_FAILED, error)
        if loading.switch is not None:
            self._end_switch(loading.switch, Outcome.FAILED, Cause.LOAD_FAILED, error)
        for job in self._live.on_model(event.model):
            self._end(job, Outcome.FAILED, Cause.LOAD_FAILED, error)

    def _on_engine_died(self, event: ev.EngineDied) -> None:
        self.residence.gone(self.now)
        self.totals.engine_losses += 1
        if self.loading is not None:
            loading = self._finish_loading(self.loading.model, "engine loss")
            self._after_loss(loading, event.cause)
            return
        lost = list(self.on_device.values())
        self.on_device.clear()
        for job in lost:
            if job.cancelled:
                self._end(job, Outcome.CANCELLED)
            elif not self._lost_too_often(job, event.cause):
                self._live.put_back(job, f"the engine was lost: {event.cause}")

    # -- decisions

    def _decide(self) -> None:
        """Puts the device to its best use: starts, stops or swaps."""
        if self.loading is not None:
            return
        if self.on_device and (forced := next((s for s in self.switches if s.force), None)) is not None:
            for job in self._running():
                job.stop_forced = True
                self._stop(job, f"forced switch to model {forced.model}", by=SWITCH)
            return
        if self.outdated and self._load_anew():
            return
        while self.switches and not self.on_device:
            switch = self.switches.popleft()
            if switch.model != self.residence.model:
                self._load(switch.model, None, switch, f"the user asked for model {switch.model}")
                return
            self._end_switch(switch, Outcome.FINISHED)
        best = self.best()
        if best and best[0].job.model != self.residence.model:
            self._make_way(best[0])
        elif best:
            self._fill(best)
        elif not self.on_device and not self.jobs and self._may_unload():
            self._unload()
        elif not self.on_device:
            self.last_reason = (
                "all wait: the model of the last chat lingers" if self.jobs else "nothing to do"
            )

    def _load_anew(self) -> bool:
        """Once nothing runs; whether there is anything to load or to wait for."""
        reason = "the model is loaded anew, as its settings were changed"
        for job in self._running():
            self._stop(job, reason, by=SWITCH)
        if self.on_device:
            return True
        self.outdated = False
        if self.residence.model is None:
            return False
        self._load(self.residence.model, None, None, reason, self.residence.unload_at)
        return True

    def _may_unload(self) -> bool:
        at = self.residence.unload_at
        return self.residence.model is not None and at is not None and at <= self.now

    def _unload(self) -> None:
        self.last_reason = f"nobody asked for {self.residence.model} as long as it was to be kept"
        self._log.note("unload", model=self.residence.model, reason=self.last_reason)
        self._log.instruct(ev.Unload())
        self.residence.gone(self.now)

    def best(self) -> list[Choice]:
        """Whom the policy would have on the device, best first, one for each slot.

        Ends at the first that needs another model: that one shares the device with nobody.
        """
        chosen: dict[Job, Choice] = {}
        seen: dict[Job, None] = {}
        while True:
            choice = self.policy.choose(self.now, self.residence)
            if choice is None or choice.by in seen:
                break
            local = choice.job.model == self.residence.model
            if local or not chosen:
                chosen.setdefault(choice.job, choice)
            if not local or len(chosen) >= self.residence.slots:
                break
            seen[choice.by] = None
            self.policy.withdraw(choice.by)
        for job in seen:
            self.policy.restore(job, self.now)
        return list(chosen.values())

    def _make_way(self, choice: Choice) -> None:
        """The best choice needs another model: nothing more is started until the device is empty."""
        if not self.on_device:
            self._load(choice.job.model, choice.job, None, choice.reason)
        for job in self._running():
            reason = self.policy.preemption(job, choice, self.now, self.residence)
            if reason is not None:
                self._stop(job, reason, by=choice.job.told_as)

    def _fill(self, best: list[Choice]) -> None:
        """Starts those of the best that do not run yet, and stops others for them where there is no slot left."""
        keep = {choice.job for choice in best}
        free = self.residence.slots - len(self.on_device)
        coming = len(self.on_device) - len(self._running())
        for choice in best:
            if choice.job.on_device:
                continue
            if free > 0 and not self.switches:
                free -= 1
                self._dispatch(choice)
            elif coming > 0:
                coming -= 1
            else:
                self._stop_for(choice, keep)

    def _stop_for(self, choice: Choice, keep: set[Job]) -> None:
        """The last started that may be stopped goes first."""
        for job in reversed(self._running()):
            if job in keep:
                continue
            reason = self.policy.preemption(job, choice, self.now, self.residence)
            if reason is not None:
                self._stop(job, reason, by=choice.job.told_as)
                return

    def _running(self) -> list[Job]:
        """Those on the device that were not told to stop."""
        return [job for job in self.on_device.values() if job.phase is Phase.RUNNING]

    def _dispatch(self, choice: Choice) -> None:
        job = choice.job
        resumed = job.first_dispatch_at is not None
        self._live.start(job)
        job.dispatched_at = self.now
        if job.first_dispatch_at is None:
            job.first_dispatch_at = self.now
        job.stop_reason, job.stop_forced = "", False
        self.residence.unload_at = None
        protected_until = self.now + job.undisturbed_s
        if self.on_device:
            protected_until = max(protected_until, self.residence.protected_until)
        self.residence.protected_until = protected_until
        if self.residence.owed in (job, choice.by):
            self.residence.owed = None
            self._look_again = True
        self.on_device[job.id] = job
        self.last_reason = choice.reason
        job.tell(self.now, f"dispatched as T{choice.tier}: {choice.reason}")
        self._log.instruct(ev.Start(job.id, resumed))
        self._log.job("dispatch", job, resumed=resumed, reason=choice.reason)

    def _stop(self, job: Job, reason: str, by: str | None) -> None:
        job.phase = Phase.STOPPING
        job.stop_reason = reason
        self.last_reason = reason
        job.tell(self.now, f"told to stop: {reason}")
        self._log.instruct(ev.Stop(job.id, reason))
        if by is not None:
            self._log.job("preempt", job, by=by, reason=reason)

    def _load(
        self, model: str, job: Job | None, switch: Switch | None, reason: str, unload_at: float | None = None
    ) -> None:
        self.loading = Loading(model, self.now, job, switch, unload_at)
        self.last_reason = reason
        trigger = job.told_as if job is not None else SWITCH
        self._log.note(
            "swap_start", **{"from": self.residence.model, "to": model, "trigger": trigger, "reason": reason}
        )
        self._log.instruct(ev.Load(model))
        self.residence.gone(self.now)

    # -- bookkeeping

    def _account(self) -> None:
        """Charges what runs for the time since the last event."""
        start, self._accounted_to = self._accounted_to, self.now
        if self.on_device and self.now > start:
            jobs = tuple(self.on_device.values())
            for job in jobs:
                job.service_s += self.now - start
            self.totals.busy_s += self.now - start
            self.policy.used(jobs, start, self.now)

    def _end(self, job: Job, outcome: Outcome, cause: Cause = Cause.NONE, error: str = "") -> None:
        """The job is over, for everybody who waits for it and for the model that it used."""
        if job.phase is not Phase.QUEUED and job.kind is LlmTaskKind.CHAT:
            self.residence.chat_ended(job.model, self.now)
        if job.phase is not Phase.QUEUED and job.model == self.residence.model:
            self.residence.keep(job.model, job.spec.keep_alive_s, self.now, lingers=job.hinted)
        if self.residence.owed is job:
            self.residence.owed = None
        self._live.end(job, outcome, cause, error)

    def _end_switch(
        self, switch: Switch, outcome: Outcome, cause: Cause = Cause.NONE, error: str = ""
    ) -> None:
        self._log.instruct(End(switch.id, switch.id, outcome, cause, error))

    def _finish_loading(self, model: str, what: str) -> Loading:
        loading = self.loading
        if loading is None or loading.model != model:
            raise ValueError(
                f"{what} of {model}, but {loading.model if loading else 'nothing'} was being loaded"
            )
        self.loading = None
        seconds = self.now - loading.started_at
        self.totals.swaps += 1
        self.totals.swap_s += seconds
        if loading.job is not None:
            self.policy.caused_swap(loading.job, seconds)
        self._log.note("swap_end", to=model, seconds=seconds, ok=what == "loaded")
        return loading

    def _after_loss(self, loading: Loading, cause: str) -> None:
        """The engine died while it loaded: load again, a few times."""
        if loading.switch is not None:
            loading.switch.engine_losses += 1
            if loading.switch.engine_losses > self.config.max_engine_losses:
                self._end_switch(loading.switch, Outcome.FAILED, Cause.ENGINE_LOST, self._lost_message(cause))
            else:
                self.switches.appendleft(loading.switch)
        elif loading.job is not None and loading.job.live:
            self._lost_too_often(loading.job, cause)

    def _lost_too_often(self, job: Job, cause: str) -> bool:
        job.engine_losses += 1
        if job.engine_losses <= self.config.max_engine_losses:
            return False
        self._end(job, Outcome.FAILED, Cause.ENGINE_LOST, self._lost_message(cause))
        return True

    def _lost_message(self, cause: str) -> str:
        return f"the engine was lost {self.config.max_engine_losses + 1} times, last because {cause}"

    def _of_device(self, job_id: str, what: str, *phases: Phase) -> Job:
        job = self.on_device.get(job_id)
        if job is None:
            known = self.jobs.get(job_id)
            if known is not None:
                raise IllegalTransition(f"{what}, but not running", known)
            raise ValueError(f"{what}: no live job {job_id!r}")
        if job.phase not in phases:
            raise IllegalTransition(what, job)
        return job

    def _count_tokens(self, job: Job, tokens_done: int) -> None:
        if tokens_done < job.tokens_done:
            raise IllegalTransition(f"tokens fell from {job.tokens_done} to {tokens_done}", job)
        job.tokens_done = tokens_done

    # -- out

    def _set_timer(self) -> None:
        at = None
        if self.loading is None:
            at = self._next_look() if self.jobs else self.residence.unload_at
        if self._look_again:
            at, self._look_again = self.now, False
        if at != self.wake_at:
            self.wake_at = at
            self._log.instruct(ev.Wake(at))

    def _next_look(self) -> float | None:
        running = self._running()
        if self.on_device and not running:
            return None  # all are stopping, and the answer will come
        if self.residence.slots == 1:
            return self.policy.next_change(self.now, running, self.residence)
        # Those that run beside each other are no rivals: only who waits can take a slot over.
        for job in running:
            self.policy.withdraw(job)
        at = self.policy.next_change(self.now, running, self.residence)
        for job in running:
            self.policy.restore(job, self.now)
        return None if at is None else max(at, self.now + LOOK_S)
