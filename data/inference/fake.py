"""An `InferenceRunner` in memory, for tests that must control time and order."""

import asyncio
import hashlib
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from data.inference.options import EngineOptions
from data.inference.text import StopMatcher
from domain.entities.llm import FinishReason, Usage
from domain.errors import EngineError, EngineLost, InvalidRequest, ModelError, PromptTooLong, UnknownModel
from domain.repositories.inference_runner import LoadedModel, RunnerJob, RunnerOutcome, RunnerProgress

_WORDS = (
    *("amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "heath"),
    *("inlet", "junco", "knoll", "larch", "maple", "nadir", "ocean", "🌱"),
)


@dataclass
class _Kept:
    """What survives a stop: produced tokens always, `prefilled` only as long as the model stays."""

    prompt: list[str]
    tokens: list[str]
    """The whole answer, decided at the start."""
    stops: StopMatcher
    prefilled: int = 0
    cached: int = 0
    done: int = 0
    text: str = ""
    evicted: bool = False


@dataclass
class _Steps:
    """Boundaries that the test has allowed and that have happened."""

    allowed: int = 0
    happened: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)


class FakeRunner:
    """Words are tokens; the answer depends on the prompt and, above temperature 0, on the seed only.

    Free running by default, giving way to the event loop at every boundary. With `stepped=True` every boundary of a
    run waits for `step()`; with `hold_loads=True` every load waits for `finish_load()`. `answer` scripts the text.
    `on_boundary` is called before each progress is emitted, for example to advance a fake clock.
    """

    def __init__(
        self,
        models: Sequence[str] = ("fake",),
        *,
        stepped: bool = False,
        hold_loads: bool = False,
        answer: Callable[[RunnerJob], str] | None = None,
        answer_tokens: int = 1_000_000,
        context_tokens: int = 4096,
        prefill_chunk: int = 4,
        on_boundary: Callable[[RunnerJob, RunnerProgress], None] | None = None,
    ) -> None:
        self.models = tuple(models)
        self.load_errors: dict[str, ModelError | EngineError] = {}
        """Model name to what `load` raises, until the test takes it out."""
        self.calls: deque[str] = deque(maxlen=100_000)
        """`load NAME`, `unload`, `run ID`, `stop ID`, `forget ID`, in order."""
        self.resident: str | None = None
        self.running: str | None = None
        self.closed = False
        self._stepped = stepped
        self._hold_loads = hold_loads
        self._answer = answer
        self._answer_tokens = answer_tokens
        self._context_tokens = context_tokens
        self._chunk = prefill_chunk
        self._on_boundary = on_boundary
        self._jobs: dict[str, _Kept] = {}
        self._prefixes: dict[str, list[str]] = {}
        self._stops: set[str] = set()
        self._steps = _Steps()
        self._load_gate = asyncio.Semaphore(0)
        self._lose_after: int | None = None

    def use(self, options: EngineOptions) -> None:
        """Of the next load."""
        self.calls.append(f"use {options.context_limit}")

    # Controls for the test.

    async def step(self, boundaries: int = 1) -> None:
        """Lets that many boundaries happen and returns when they have, or when the run ended before them."""
        steps = self._steps
        async with steps.changed:
            steps.allowed += boundaries
            steps.changed.notify_all()
            await steps.changed.wait_for(lambda: steps.happened >= steps.allowed)

    def finish_load(self) -> None:
        """Lets one held load go on."""
        self._load_gate.release()

    def lose_engine(self, after_boundaries: int = 0) -> None:
        """The engine dies once so many more boundaries have happened, in this run or a later one."""
        self._lose_after = after_boundaries

    # The port.

    async def load(self, model: str) -> LoadedModel:
        self.calls.append(f"load {model}")
        loaded = LoadedModel(
            name=model, engine="fake", context_tokens=self._context_tokens, load_s=0.0, memory_bytes=0
        )
        if self.resident == model:
            return loaded
        self._drop_model()
        if self._hold_loads:
            await self._load_gate.acquire()
        else:
            await asyncio.sleep(0)
        if model in self.load_errors:
            raise self.load_errors[model]
        if model not in self.models:
            raise UnknownModel(f"No model named {model!r} is installed. Known: {', '.join(self.models)}.")
        self.resident = model
        return loaded

    async def unload(self) -> None:
        self.calls.append("unload")
        self._drop_model()

    async def run(self, job: RunnerJob, emit: Callable[[RunnerProgress], None]) -> RunnerOutcome:
        self.calls.append(f"run {job.id}")
        if self.resident is None:
            raise EngineError("No model is loaded. Load one before running a job.")
        self.running = job.id
        try:
            kept = self._jobs.get(job.id) or self._start(job)
            return await self._advance(job, kept, emit)
        except asyncio.CancelledError:
            self.forget(job.id)
            raise
        finally:
            self.running = None
            self._stops.discard(job.id)
            steps = self._steps
            steps.allowed = steps.happened = 0
            async with steps.changed:
                steps.changed.notify_all()

    def stop(self, job_id: str) -> None:
        self.calls.append(f"stop {job_id}")
        self._stops.add(job_id)

    def forget(self, job_id: str) -> None:
        self.calls.append(f"forget {job_id}")
        self._jobs.pop(job_id, None)
        self._stops.discard(job_id)

    async def aclose(self) -> None:
        self._drop_model()
        self.closed = True

    # How it runs.

    def _start(self, job: RunnerJob) -> _Kept:
        turns = [f"{message.role}: {message.content}" for message in job.messages]
        source = job.prompt if job.prompt is not None else " ".join([*turns, "assistant:"])
        prompt = source.split()
        if not prompt:
            raise InvalidRequest("The prompt is empty. Give at least one word.")
        if len(prompt) >= self._context_tokens:
            raise PromptTooLong(len(prompt), self._context_tokens)
        kept = _Kept(prompt, self._tokens(job, source), StopMatcher(job.stop))
        prefix = self._prefixes.get(job.cache_key, [])
        kept.cached = min(_common(prefix, prompt), len(prompt) - 1)
        kept.prefilled = kept.cached
        self._jobs[job.id] = kept
        return kept

    def _tokens(self, job: RunnerJob, source: str) -> list[str]:
        if self._answer is not None:
            return re.findall(r"\s*\S+\s*$|\s*\S+", self._answer(job))
        seed = job.sampling.seed if job.sampling.temperature > 0 else None
        count = min(job.max_tokens, self._answer_tokens, self._context_tokens)
        digest = hashlib.shake_256(f"{seed}|{source}".encode()).digest(count)
        return [(" " if at else "") + _WORDS[byte % len(_WORDS)] for at, byte in enumerate(digest)]

    async def _advance(
        self, job: RunnerJob, kept: _Kept, emit: Callable[[RunnerProgress], None]
    ) -> RunnerOutcome:
        if kept.evicted:
            kept.prefilled = 0
            kept.evicted = False
        reason: FinishReason | None = self._end(job, kept)
        while reason is None:
            await self._boundary_allowed()
            text = ""
            if kept.prefilled < len(kept.prompt):
                kept.prefilled = min(len(kept.prompt), kept.prefilled + self._chunk)
            else:
                text, stopped = kept.stops.feed(kept.tokens[kept.done])
                kept.done += 1
                reason = "stop" if stopped else self._end(job, kept)
                if reason is not None and not stopped:
                    text += kept.stops.flush()
                kept.text += text
            progress = RunnerProgress(
                prefilled_tokens=kept.prefilled,
                prompt_tokens=len(kept.prompt),
                tokens_done=kept.done,
                text=text,
            )
            if self._on_boundary is not None:
                self._on_boundary(job, progress)
            emit(progress)
            await self._boundary_happened()
            if reason is None and job.id in self._stops:
                break
        if reason is not None:
            self._prefixes[job.cache_key] = kept.prompt + [
                token.strip() for token in kept.tokens[: kept.done]
            ]
        return RunnerOutcome(
            status="finished" if reason else "stopped",
            finish_reason=reason,
            tokens_done=kept.done,
            text=kept.text,
            usage=Usage(
                prompt_tokens=len(kept.prompt), completion_tokens=kept.done, cached_tokens=kept.cached
            ),
        )

    def _end(self, job: RunnerJob, kept: _Kept) -> FinishReason | None:
        if kept.done >= job.max_tokens or len(kept.prompt) + kept.done >= self._context_tokens:
            return "length"
        return "stop" if kept.done >= len(kept.tokens) else None

    async def _boundary_allowed(self) -> None:
        if self._lose_after == 0:
            self._lose_after = None
            self._drop_model()
            raise EngineLost("The fake engine was told to die. Load a model and run the job again.")
        if self._stepped:
            steps = self._steps
            async with steps.changed:
                await steps.changed.wait_for(lambda: steps.happened < steps.allowed)
        else:
            await asyncio.sleep(0)

    async def _boundary_happened(self) -> None:
        if self._lose_after:
            self._lose_after -= 1
        if self._stepped:
            async with self._steps.changed:
                self._steps.happened += 1
                self._steps.changed.notify_all()

    def _drop_model(self) -> None:
        self.resident = None
        self._prefixes.clear()
        for kept in self._jobs.values():
            kept.evicted = True


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the common beginning."""
    size = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        size += 1
    return size
