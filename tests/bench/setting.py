"""What the benchmarks run on: the default model, the real engine behind the real dispatcher, and a look at both."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil

from data.clock import Clock
from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from data.models.store import FileModelStore
from data.scheduling.dispatcher import Dispatcher
from domain.entities.llm import Finished, GenerationRequest, GenerationResult, TextDelta
from domain.entities.models import InstalledModel
from domain.errors import EngineError
from domain.repositories.inference_runner import InferenceRunner, LoadedModel, RunnerJob, RunnerOutcome
from domain.repositories.inference_runner import RunnerProgress as Progress


class WatchedRunner:
    """Passes everything on, and remembers where the running job is."""

    def __init__(self, inner: InferenceRunner) -> None:
        self._inner = inner
        self.running: str | None = None
        self.last: Progress | None = None
        """The newest boundary of the running job; none before its first."""

    @property
    def prefilling(self) -> bool:
        """Whether a prompt is being read now."""
        last = self.last
        return self.running is not None and (last is None or last.prefilled_tokens < last.prompt_tokens - 1)

    async def load(self, model: str) -> LoadedModel:
        return await self._inner.load(model)

    async def unload(self) -> None:
        await self._inner.unload()

    async def run(self, job: RunnerJob, emit: Callable[[Progress], None]) -> RunnerOutcome:
        def noting(progress: Progress) -> None:
            self.last = progress
            emit(progress)

        self.running, self.last = job.id, None
        try:
            return await self._inner.run(job, noting)
        finally:
            self.running = None

    def stop(self, job_id: str) -> None:
        self._inner.stop(job_id)

    def forget(self, job_id: str) -> None:
        self._inner.forget(job_id)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True)
class Setting:
    """Given to every benchmark. `quick` asks for as few samples as make a report, whose numbers mean nothing."""

    clock: Clock
    store: FileModelStore
    model: InstalledModel
    quick: bool = False

    def count(self, samples: int) -> int:
        """How many samples to take."""
        return 1 if self.quick else samples

    @asynccontextmanager
    async def dispatcher(self) -> AsyncIterator[tuple[Dispatcher, WatchedRunner]]:
        """The program's own dispatcher and engine, with the model loaded."""
        runner = WatchedRunner(EngineRunner(self.store, EngineOptions(), self.clock))
        async with Dispatcher(runner, self.store, self.clock) as dispatcher:
            await dispatcher.switch_model(self.model.name)
            yield dispatcher, runner


@dataclass(frozen=True)
class Timing:
    """What the caller of one answer saw, in seconds from its request."""

    first_token_s: float
    last_token_s: float
    result: GenerationResult


async def timed(clock: Clock, dispatcher: Dispatcher, request: GenerationRequest) -> Timing:
    """Asks, and reads the stream to its end. Raises `EngineError` if the answer is empty."""
    start = clock.monotonic()
    first: float | None = None
    last = 0.0
    async for event in dispatcher.submit(request).events():
        now = clock.monotonic() - start
        if isinstance(event, TextDelta):
            first, last = first if first is not None else now, now
        elif isinstance(event, Finished):
            if first is None:
                raise EngineError("The answer is empty.")
            return Timing(first, last, event.result)
    raise EngineError("The stream ended without a result.")


def threads() -> int:
    """What the engine uses when nothing is configured."""
    return psutil.cpu_count(logical=False) or 1
