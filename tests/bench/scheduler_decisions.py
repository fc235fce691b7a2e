"""The cost of a decision as the queue grows, in the scheduler alone: no engine, no clock, no event loop."""

import random
from dataclasses import dataclass, field

from data.clock import Clock
from data.scheduling import events as ev
from data.scheduling.config import SchedulerConfig
from data.scheduling.jobs import JobSpec
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind
from tests.bench.figures import Figure, Report, at_most, median, spread
from tests.bench.setting import Setting

SMALL, LARGE = 100, 100_000
_KINDS = (LlmTaskKind.EXTRACT, LlmTaskKind.NATARAJ, LlmTaskKind.GANA, LlmTaskKind.API, LlmTaskKind.CHAT)
_KIND_WEIGHTS = (50, 20, 15, 13, 2)
_FLOWS = {
    LlmTaskKind.EXTRACT: 1000,
    LlmTaskKind.NATARAJ: 20,
    LlmTaskKind.GANA: 50,
    LlmTaskKind.API: 10,
    LlmTaskKind.CHAT: 5,
}
_MODELS = ("a", "b", "c")
_MODEL_WEIGHTS = (90, 7, 3)
_SERVICE_S = 2.0
_LOAD_S = 1.0


@dataclass
class Device:
    """Plays the engine: every job takes `_SERVICE_S` and every load `_LOAD_S`, in the scheduler's own time."""

    scheduler: InferenceScheduler
    clock: Clock
    random: random.Random
    now: float = 0.0
    running: str | None = None
    stopping: bool = False
    loading: str | None = None
    wake_at: float | None = None
    submitted: int = 0
    spent_s: dict[str, float] = field(default_factory=dict)
    """Real seconds by kind of event."""
    events: dict[str, int] = field(default_factory=dict)

    def submit(self) -> None:
        draw = self.random
        kind = draw.choices(_KINDS, _KIND_WEIGHTS)[0]
        self.submitted += 1
        spec = JobSpec(
            id=f"job-{self.submitted}",
            kind=kind,
            flow=f"flow-{draw.randrange(_FLOWS[kind])}",
            model=draw.choices(_MODELS, _MODEL_WEIGHTS)[0],
            deadline=self.now + draw.uniform(60, 6000) if kind is LlmTaskKind.GANA else None,
            foreground_hint=kind is LlmTaskKind.API and draw.random() < 0.05,
        )
        self._feed(ev.Submit(self.now, spec))

    def finish(self) -> None:
        """The running job takes its time and finishes, or another one that was put in its place does."""
        end = self.now + _SERVICE_S
        while self.wake_at is not None and self.wake_at <= end:
            self._tick()
            self.settle()
        self.now = max(self.now, end)
        job, self.running = self.running, None
        assert job is not None, "a job runs after every `settle`"
        self._feed(ev.Completed(self.now, job, 0))

    def choose(self) -> None:
        start = self.clock.monotonic()
        self.scheduler.policy.choose(self.now, self.scheduler.residence)
        self._charge("choose", start)

    def settle(self) -> None:
        """Until a job runs that nobody wants to stop."""
        while self.running is None or self.stopping:
            if self.loading is not None:
                model, self.loading = self.loading, None
                self.now += _LOAD_S
                self._feed(ev.Loaded(self.now, model))
            elif self.running is not None:
                job, self.running, self.stopping = self.running, None, False
                self._feed(ev.Stopped(self.now, job, 0))
            else:
                self._tick()

    def _tick(self) -> None:
        assert self.wake_at is not None, "a device that idles has a timer"
        self.now, self.wake_at = max(self.now, self.wake_at), None
        self._feed(ev.Tick(self.now))

    def _feed(self, event: ev.Event) -> None:
        start = self.clock.monotonic()
        step = self.scheduler.handle(event)
        self._charge(type(event).__name__, start)
        for instruction in step.instructions:
            match instruction:
                case ev.Start(job_id=job_id):
                    self.running = job_id
                case ev.Stop():
                    self.stopping = True
                case ev.Load(model=model):
                    self.loading = model
                case ev.Wake(at=at):
                    self.wake_at = at

    def _charge(self, what: str, start: float) -> None:
        self.spent_s[what] = self.spent_s.get(what, 0.0) + self.clock.monotonic() - start
        self.events[what] = self.events.get(what, 0) + 1


async def run(setting: Setting) -> Report:
    """Steady state: whenever a job finishes another is submitted, so that the queue keeps its length.

    A decision is a finish and a submit handled, and one more choice. Timers, stops and loads happen as they would; their
    cost is among the raw numbers.
    """
    large = 1000 if setting.quick else LARGE
    blocks, decisions = (2, 20) if setting.quick else (20, 300)
    devices = [_filled(jobs, setting.clock) for jobs in (SMALL, large)]
    costs: list[list[float]] = [[], []]
    for _ in range(blocks):
        for device, cost in zip(devices, costs, strict=True):
            cost.append(_block(device, decisions))
    small, big = median(costs[0]), median(costs[1])
    figures = (
        Figure(f"cost of a decision, {LARGE:,} jobs / {SMALL} jobs", big / small, goal=at_most(3)),
        Figure(f"decisions with {SMALL} jobs", 1 / small, "1/s"),
        Figure(f"decisions with {LARGE:,} jobs", 1 / big, "1/s"),
    )
    raw: dict[str, object] = {}
    for jobs, device, cost in zip((SMALL, large), devices, costs, strict=True):
        raw[f"{jobs}_jobs"] = {
            "decision_s": spread(cost),
            "mean_s_by_event": {what: device.spent_s[what] / n for what, n in device.events.items()},
            "events": device.events,
        }
    return Report("scheduler-decisions", figures, raw)


def _filled(jobs: int, clock: Clock) -> Device:
    limit = 2 * LARGE
    config = SchedulerConfig(max_queued=limit, max_queued_per_flow=limit)
    device = Device(InferenceScheduler(config, resident=_MODELS[0]), clock, random.Random(jobs))
    for _ in range(jobs):
        device.submit()
        device.settle()
    device.spent_s.clear()
    device.events.clear()
    return device


def _block(device: Device, decisions: int) -> float:
    """Mean seconds of a decision."""
    parts = ("Completed", "Submit", "choose")
    before = sum(device.spent_s.get(part, 0.0) for part in parts)
    for _ in range(decisions):
        device.finish()
        device.settle()
        device.submit()
        device.settle()
        device.choose()
    return (sum(device.spent_s[part] for part in parts) - before) / decisions
