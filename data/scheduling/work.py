"""What the dispatcher knows of a live job."""

import secrets
from dataclasses import dataclass, field

from data.scheduling.handle import CallerHandle
from data.scheduling.jobs import Job
from domain.entities.llm import GenerationRequest, GenerationResult
from domain.errors import UniunError
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome, RunnerProgress


@dataclass(slots=True)
class Work:
    """A live job: the scheduler's record of it, what the device needs, and who listens."""

    job: Job
    runner_job: RunnerJob
    handles: dict[str, CallerHandle] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    tokens: int = 0
    progress: RunnerProgress | None = None
    first_token_at: float | None = None
    outcome: RunnerOutcome | None = None
    error: UniunError | None = None

    def result(self, outcome: RunnerOutcome, submitted_at: float) -> GenerationResult:
        """What one caller is told at the end, in times since it asked."""
        job = self.job
        started = job.first_dispatch_at if job.first_dispatch_at is not None else submitted_at
        first = self.first_token_at
        return GenerationResult(
            text=outcome.text,
            finish_reason=outcome.finish_reason or "stop",
            usage=outcome.usage,
            wait_s=max(0.0, started - submitted_at),
            first_token_s=None if first is None else max(0.0, first - submitted_at),
            service_s=job.service_s,
            preemptions=job.preemptions,
        )


def runner_job(job: Job, request: GenerationRequest) -> RunnerJob:
    """For the device; without a seed it gets one of its own, so that a lost engine draws the same tokens again."""
    sampling = request.sampling
    if sampling.seed is None:
        sampling = sampling.model_copy(update={"seed": secrets.randbits(62)})
    return RunnerJob(
        id=job.id,
        cache_key=f"{request.kind}/{request.flow}",
        messages=request.messages,
        prompt=request.prompt,
        sampling=sampling,
        max_tokens=request.max_tokens,
        stop=request.stop,
        json_schema=request.json_schema,
        tooling=request.tooling,
        thinking=request.thinking,
    )
