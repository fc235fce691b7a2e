"""A model of the engine: how long prefill, decode and loading take, and where it can stop."""

import math
from dataclasses import dataclass, field

from data.scheduling.scenario import ModelSpeed

TOLERANCE = 1e-9
"""Relative; a stop asked for at the very moment of a boundary takes effect there."""


@dataclass(slots=True)
class SimulatedJob:
    """What the engine keeps of a job. Counts in tokens."""

    prompt_tokens: int
    output_tokens: int
    tokens_done: int = 0
    kv_tokens: int = 0
    kv_epoch: int = -1
    """The load of the model during which the KV state was made; a swap drops it."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a run ends."""

    at: float
    tokens_done: int
    kv_tokens: int
    finished: bool


@dataclass(slots=True)
class Run:
    """One uninterrupted stay of a job on the device; boundaries are computed, not stepped through."""

    job: SimulatedJob
    speed: ModelSpeed
    started_at: float
    chunk_tokens: int
    epoch: int
    kept: int = field(init=False)
    """Tokens whose KV state was still there at the start."""
    to_prefill: int = field(init=False)
    prefilled_at: float = field(init=False)

    def __post_init__(self) -> None:
        job = self.job
        self.kept = job.kv_tokens if job.kv_epoch == self.epoch else 0
        self.to_prefill = max(0, job.prompt_tokens + job.tokens_done - self.kept)
        self.prefilled_at = self.started_at + self.to_prefill / self.speed.prefill_tps

    def first_token_at(self) -> float | None:
        """When the job's very first token appears in this run; none if it has one or will have none."""
        if self.job.tokens_done or not self.job.output_tokens:
            return None
        return self.prefilled_at + 1 / self.speed.decode_tps

    def end(self) -> Boundary:
        """Where it ends if nobody stops it."""
        job = self.job
        left = job.output_tokens - job.tokens_done
        at = self.prefilled_at + left / self.speed.decode_tps
        return Boundary(at, job.output_tokens, job.prompt_tokens + job.output_tokens, finished=True)

    def stop(self, now: float) -> Boundary:
        """The first boundary at or after `now`, and after the start."""
        job, speed = self.job, self.speed
        if self.to_prefill and now <= self.prefilled_at * (1 - TOLERANCE):
            done = (now - self.started_at) * speed.prefill_tps / self.chunk_tokens
            chunks = max(1, math.ceil(done - TOLERANCE * max(1.0, done)))
            tokens = min(chunks * self.chunk_tokens, self.to_prefill)
            at = max(now, self.started_at + tokens / speed.prefill_tps)
            finished = tokens == self.to_prefill and job.tokens_done == job.output_tokens
            return Boundary(at, job.tokens_done, self.kept + tokens, finished)
        done = max(0.0, (now - self.prefilled_at) * speed.decode_tps)
        tokens = math.ceil(done - TOLERANCE * max(1.0, done))
        if not self.to_prefill:
            tokens = max(1, tokens)
        if job.tokens_done + tokens >= job.output_tokens:
            return self.end()
        at = max(now, self.prefilled_at + tokens / speed.decode_tps)
        return Boundary(at, job.tokens_done + tokens, self.kept + self.to_prefill + tokens, finished=False)

    def settle(self, boundary: Boundary) -> None:
        """The run ended at `boundary`."""
        self.job.tokens_done = boundary.tokens_done
        self.job.kv_tokens = boundary.kv_tokens
        self.job.kv_epoch = self.epoch
