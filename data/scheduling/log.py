"""Writes what one step leads to: records for the trace, instructions for whoever drives the scheduler."""

from typing import Any

from data.scheduling.events import Instruction, Record
from data.scheduling.jobs import Job
from data.scheduling.policy import Policy


class StepLog:
    """Collects what happened at one moment, in the words of docs/scheduler.md."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.now = 0.0
        self.records: list[Record] = []
        self.instructions: list[Instruction] = []

    def begin(self, now: float) -> None:
        self.now, self.records, self.instructions = now, [], []

    def instruct(self, instruction: Instruction) -> None:
        self.instructions.append(instruction)

    def note(self, event: str, **fields: Any) -> None:
        self.records.append(Record(self.now, event, fields))

    def job(self, event: str, job: Job, *, caller: str | None = None, **fields: Any) -> None:
        """In the name of one of its callers, the first by default, and with what that one asked for."""
        name = caller or job.told_as
        spec = job.callers.get(name, job.spec)
        tier = self._policy.tier(job)
        self.note(event, job=name, kind=spec.kind, flow=spec.flow, tier=tier, model=spec.model, **fields)

    def share(self) -> None:
        value, exhausted = self._policy.share(self.now)
        self.note("share", value=value, exhausted=exhausted)
