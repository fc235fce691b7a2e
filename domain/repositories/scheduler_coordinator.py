"""The way in to the one language model."""

from collections.abc import AsyncIterator
from typing import Protocol

from domain.entities.llm import GenerationEvent, GenerationRequest, GenerationResult, LlmTaskKind
from domain.entities.scheduler import SchedulerSnapshot


class JobHandle(Protocol):
    """A submitted job, as its caller sees it."""

    @property
    def id(self) -> str:
        """Unique in this process; another request may name it in `waits_for`."""
        ...

    def events(self) -> AsyncIterator[GenerationEvent]:
        """Everything that happens to the job until `Finished`; may be iterated once.

        Raises what ended the job otherwise (`JobCancelled`, `JobStopped`, `ModelError`, `EngineError`, …). Leaving the
        iteration early cancels the job.
        """
        ...

    async def result(self) -> GenerationResult:
        """The finished answer; raises as `events` does. Being cancelled here cancels the job."""
        ...

    def cancel(self) -> None:
        """Ends the job at its next boundary, or at once if it has not started. Harmless when it has ended."""
        ...


class SchedulerCoordinator(Protocol):
    """Takes jobs from every producer and runs them one at a time on one model at a time."""

    def submit(self, request: GenerationRequest) -> JobHandle:
        """Queues a job. Raises `QueueFull` or `UnknownModel`."""
        ...

    def set_foreground(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        """Says what the user looks at: a kind, with `subject` one flow of it; nothing when `kind` is none."""
        ...

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        """Makes `model` resident: after the running job, or at once when forced.

        Raises `UnknownModel` or `ModelLoadFailed`.
        """
        ...

    def snapshot(self) -> SchedulerSnapshot:
        """The queue, the running job and the reasons, now."""
        ...
