"""Drives an `InferenceScheduler` the way a dispatcher does, and keeps its own account of what must hold.

The account is made from instructions and events alone, so that it does not share the scheduler's mistakes.
"""

from dataclasses import dataclass, field

from data.scheduling import events as ev
from data.scheduling.events import Outcome
from data.scheduling.inspection import check, snapshot
from data.scheduling.jobs import JobSpec
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind


class Broken(AssertionError):
    """The instructions contradict the contract."""


@dataclass
class Driver:
    """Time moves only in `advance`. Every event is followed by all checks."""

    scheduler: InferenceScheduler
    now: float = 0.0
    slots: dict[str, int] = field(default_factory=dict)
    """How many jobs of a model can run at once; 1 if it is not named."""
    on_device: dict[str, bool] = field(default_factory=dict)
    """Who runs, and whether it was told to stop."""
    loading: str | None = None
    resident: str | None = None
    wake_at: float | None = None
    specs: dict[str, JobSpec] = field(default_factory=dict)
    ended: dict[str, Outcome] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    switches: set[str] = field(default_factory=set)
    serial: int = 0

    # -- what users do

    def submit(self, spec: JobSpec) -> None:
        self.specs[spec.id] = spec
        self._feed(ev.Submit(self.now, spec))

    def cancel(self, caller: str) -> None:
        self._feed(ev.Cancel(self.now, caller))

    def surface(self, kind: LlmTaskKind | None, subject: str | None) -> None:
        self._feed(ev.SetForeground(self.now, kind, subject))

    def switch(self, model: str, *, force: bool) -> None:
        self.serial += 1
        switch_id = f"switch-{self.serial}"
        self.switches.add(switch_id)
        self._feed(ev.SwitchModel(self.now, switch_id, model, force))

    def reload(self) -> None:
        self._feed(ev.Reload(self.now))

    # -- what the device answers

    def boundary(self, produced: int, *, finish: bool, which: int = 0) -> None:
        """One of the running jobs ends here, or stops if it was told to; otherwise it just goes on."""
        job = self._one(which)
        if job is None:
            return
        self.tokens[job] += produced
        if finish:
            del self.on_device[job]
            self._feed(ev.Completed(self.now, job, self.tokens[job]))
        elif self.on_device[job]:
            del self.on_device[job]
            self._feed(ev.Stopped(self.now, job, self.tokens[job]))

    def fail(self, which: int = 0) -> None:
        if (job := self._one(which)) is not None:
            del self.on_device[job]
            self._feed(ev.JobFailed(self.now, job, "out of luck"))

    def _one(self, which: int) -> str | None:
        return list(self.on_device)[which % len(self.on_device)] if self.on_device else None

    def loaded(self, *, ok: bool) -> None:
        model = self.loading
        if model is None:
            return
        self.loading = None
        self.resident = model if ok else None
        loaded = ev.Loaded(self.now, model, self.slots.get(model, 1))
        self._feed(loaded if ok else ev.LoadFailed(self.now, model, "no such file"))

    def engine_dies(self) -> None:
        self.on_device.clear()
        self.loading = self.resident = None
        self._feed(ev.EngineDied(self.now, "signal 9"))

    def advance(self, seconds: float) -> None:
        """Lets time pass, with the ticks that were asked for."""
        target = self.now + seconds
        for _ in range(10_000):
            if self.wake_at is None or self.wake_at > target:
                break
            if self.wake_at < self.now:
                raise Broken(f"a timer was set in the past: {self.wake_at} < {self.now}")
            self.now, self.wake_at = self.wake_at, None
            self._feed(ev.Tick(self.now))
        else:
            raise Broken("the timer fires without end")
        self.now = target

    def drain(self) -> None:
        """Lets everything run to its end: with a device that works, nothing may be left over."""
        for _ in range(5 * (len(self.specs) + len(self.switches)) + 50):
            if self.loading is not None:
                self.advance(1.0)
                self.loaded(ok=True)
            elif self.on_device:
                self.advance(0.5)
                self.boundary(1, finish=True)
            elif self.wake_at is not None:
                self.advance(max(0.0, self.wake_at - self.now))
            else:
                break
        left = set(self.specs) - set(self.ended)
        if left or self.switches - set(self.ended):
            raise Broken(f"never ended: {sorted(left)[:5]}, switches {self.switches - set(self.ended)}")

    # -- the account

    def _feed(self, event: ev.Event) -> None:
        step = self.scheduler.handle(event)
        for instruction in step.instructions:
            self._take(instruction)
        check(self.scheduler)
        snapshot(self.scheduler, self.now)
        if not self.on_device and self.loading is None and self._waiting() and self.wake_at is None:
            raise Broken(f"jobs wait, the device idles and no timer is set after {event}")

    def _waiting(self) -> set[str]:
        return set(self.specs) - set(self.ended)

    def _take(self, instruction: ev.Instruction) -> None:
        match instruction:
            case ev.Start(job_id=job_id, resumed=resumed):
                slots = self.slots.get(self.resident or "", 1)
                if len(self.on_device) >= slots or self.loading is not None or job_id in self.on_device:
                    raise Broken(f"{job_id} was started while the device was taken")
                if self.specs[job_id].model != self.resident:
                    raise Broken(f"{job_id} was started while its model was not resident")
                if resumed != (job_id in self.started):
                    raise Broken(f"resumed={resumed} is wrong for {job_id}")
                self.started.add(job_id)
                self.tokens.setdefault(job_id, 0)
                self.on_device[job_id] = False
            case ev.Stop(job_id=job_id):
                if self.on_device.get(job_id) is not False:
                    raise Broken(f"{job_id} was told to stop, running are {self.on_device}")
                self.on_device[job_id] = True
            case ev.Load(model=model):
                if self.on_device or self.loading is not None:
                    raise Broken(f"{model} is loaded while the device is taken")
                self.loading, self.resident = model, None
            case ev.Unload():
                if self.on_device or self.loading is not None or self.resident is None or self._waiting():
                    raise Broken("the model was unloaded although something is wanted of it")
                self.resident = None
            case ev.End(id=caller, outcome=outcome):
                if caller in self.ended:
                    raise Broken(f"{caller} ended twice")
                if (
                    outcome is Outcome.FINISHED
                    and caller in self.specs
                    and instruction.job_id not in self.started
                ):
                    raise Broken(f"{caller} finished without having run")
                self.ended[caller] = outcome
            case ev.Release(job_id=job_id):
                if job_id in self.on_device:
                    raise Broken(f"{job_id} was released while it runs")
            case ev.Wake(at=at):
                self.wake_at = at
