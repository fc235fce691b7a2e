"""Runs the scheduler from a heap of events, with a model of the engine. Deterministic to the byte."""

import heapq
import json
from collections.abc import Callable
from typing import Any

from data.scheduling import events as ev
from data.scheduling.events import Record
from data.scheduling.inspection import check
from data.scheduling.jobs import JobSpec
from data.scheduling.recording import is_recording, read_recording
from data.scheduling.scenario import Scenario, ScenarioEvent, parse_scenario
from data.scheduling.scheduler import InferenceScheduler
from data.scheduling.simulated_engine import Run, SimulatedJob
from data.scheduling.summary import summarise
from data.scheduling.trace_lines import plain_record
from domain.entities.simulation import SimulationReport
from domain.errors import ScenarioError

MAX_STEPS = 20_000_000

ENGINE, USER, TIMER = 0, 1, 2
"""At the same moment the engine's answers come first, then what users do, then timers."""


class ScenarioSimulator:
    """Implements `Simulator`."""

    def simulate(self, text: str, filename: str) -> SimulationReport:
        if is_recording(text):
            return read_recording(text, filename)
        simulation = Simulation(parse_scenario(text, filename))
        simulation.run()
        return simulation.report()


class Simulation:
    """One run of one scenario. `on_step` is called after every event, for tests that check invariants."""

    def __init__(
        self, scenario: Scenario, on_step: Callable[[InferenceScheduler], None] | None = None
    ) -> None:
        self._scenario = scenario
        self.scheduler = InferenceScheduler(
            scenario.config,
            policy=scenario.policy,
            resident=scenario.loaded,
            slots=scenario.models[scenario.loaded].parallel if scenario.loaded else 1,
        )
        self.trace: list[dict[str, Any]] = []
        self._on_step = on_step
        self._heap: list[tuple[float, int, int, Callable[[float], None]]] = []
        self._serial = 0
        self._jobs: dict[str, SimulatedJob] = {}
        self._runs: dict[str, Run] = {}
        self._epoch = 0
        self._switches = 0
        self._wake_serial = 0
        self._now = 0.0
        """When something happened last; timers that nobody waits for any more do not count."""
        for event in scenario.events:
            self._push(event.at, USER, lambda at, event=event: self._user(at, event))  # type: ignore[misc]

    def run(self) -> None:
        """Plays the scenario to its end, or to `until`."""
        until = self._scenario.until
        for _ in range(MAX_STEPS):
            if not self._heap or (until is not None and self._heap[0][0] > until):
                break
            at, _, _, act = heapq.heappop(self._heap)
            act(at)
        else:
            raise ScenarioError(f"The scenario needs more than {MAX_STEPS} steps; give it an `until`.")
        end = self._now if until is None else until
        self.trace.append(summarise(self.trace, end))

    def report(self) -> SimulationReport:
        """The trace, and the same as lines of JSON."""
        lines = tuple(json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in self.trace)
        return SimulationReport(trace=tuple(self.trace), json_lines=lines)

    def _push(self, at: float, rank: int, act: Callable[[float], None]) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at, rank, self._serial, act))

    def _user(self, at: float, event: ScenarioEvent) -> None:
        if (spec := event.submit) is not None:
            self._jobs[spec.id] = SimulatedJob(spec.prompt_tokens, spec.output_tokens)
            fields = spec.model_dump(exclude={"prompt_tokens", "output_tokens"})
            self._feed(ev.Submit(at, JobSpec(**fields)))
        elif event.cancel is not None:
            self._feed(ev.Cancel(at, event.cancel))
        elif (switch := event.switch_model) is not None:
            self._switches += 1
            self._feed(ev.SwitchModel(at, f"model_switch-{self._switches}", switch.model, switch.force))
        else:
            surface = event.foreground
            kind, subject = (surface.kind, surface.subject) if surface is not None else (None, None)
            self._feed(ev.SetForeground(at, kind, subject))

    def _feed(self, event: ev.Event) -> None:
        self._now = event.at
        step = self.scheduler.handle(event)
        for record in step.records:
            self._write(record)
        for instruction in step.instructions:
            self._obey(event.at, instruction)
        if self._on_step is not None:
            self._on_step(self.scheduler)

    def _write(self, record: Record) -> None:
        self.trace.append(plain_record(record, record.t))

    def _obey(self, now: float, instruction: ev.Instruction) -> None:
        match instruction:
            case ev.Start(job_id=job_id):
                self._start(now, job_id)
            case ev.Stop(job_id=job_id):
                self._stop(now, job_id)
            case ev.Load(model=model):
                self._epoch += 1
                speed = self._scenario.models[model]
                self._push(
                    now + speed.load_s, ENGINE, lambda at: self._feed(ev.Loaded(at, model, speed.parallel))
                )
            case ev.Wake(at=at):
                self._wake(at)
            case ev.Release(job_id=job_id):
                self._jobs.pop(job_id, None)
            case ev.End():
                pass  # the record says it already

    def _start(self, now: float, job_id: str) -> None:
        model = self.scheduler.jobs[job_id].model
        chunk = self._scenario.config.prefill_chunk_tokens
        run = Run(self._jobs[job_id], self._scenario.models[model], now, chunk, self._epoch)
        self._runs[job_id] = run
        first = run.first_token_at()
        if first is not None:
            self._push(first, ENGINE, lambda at: self._first_token(at, job_id, run))
        self._end_at_boundary(job_id, run)

    def _stop(self, now: float, job_id: str) -> None:
        self._end_at_boundary(job_id, self._runs[job_id], stop_at=now)

    def _end_at_boundary(self, job_id: str, run: Run, stop_at: float | None = None) -> None:
        boundary = run.end() if stop_at is None else run.stop(stop_at)

        def act(at: float) -> None:
            if self._runs.get(job_id) is not run or (
                stop_at is None and self.scheduler.jobs[job_id].phase.value == "stopping"
            ):
                return
            run.settle(boundary)
            del self._runs[job_id]
            answer = ev.Completed if boundary.finished else ev.Stopped
            self._feed(answer(at, job_id, boundary.tokens_done))

        self._push(boundary.at, ENGINE, act)

    def _first_token(self, at: float, job_id: str, run: Run) -> None:
        if self._runs.get(job_id) is not run:
            return
        job = self.scheduler.jobs[job_id]
        tier = self.scheduler.policy.tier(job)
        for caller, spec in job.callers.items():
            fields = {
                "job": caller,
                "kind": job.kind,
                "flow": spec.flow,
                "tier": tier,
                "model": job.model,
            }
            self._write(Record(at, "first_token", fields))

    def _wake(self, at: float | None) -> None:
        self._wake_serial += 1
        serial = self._wake_serial
        if at is not None:
            self._push(
                at, TIMER, lambda now: self._feed(ev.Tick(now)) if self._wake_serial == serial else None
            )


def simulate_checked(scenario: Scenario) -> Simulation:
    """A run with `check()` after every event."""
    simulation = Simulation(scenario, on_step=check)
    simulation.run()
    return simulation
