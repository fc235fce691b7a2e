"""From a stop request to the engine's word that it has stopped."""

import asyncio
import itertools
import random
from dataclasses import dataclass

from data.inference.options import EngineOptions
from data.inference.supervisor import EngineRunner
from domain.entities.llm import Sampling
from domain.repositories.inference_runner import RunnerJob, RunnerProgress
from tests.bench import prompts
from tests.bench.figures import Figure, Report, at_most, median, percentile, spread
from tests.bench.setting import Setting


@dataclass(frozen=True)
class Stop:
    """One stop: boundaries that were reported after the request, and how long it took."""

    boundaries: int
    seconds: float


async def run(setting: Setting) -> Report:
    """Stops one job again and again, at random moments, and resumes it each time."""
    runner = EngineRunner(setting.store, EngineOptions(), setting.clock)
    samples = setting.count(60)
    try:
        await runner.load(setting.model.name)
        decode, token_s = await _stops(setting, runner, 2, 600, samples, (0.02, 0.06), "decode")
        prefill, _ = await _stops(setting, runner, 80, 1, samples, (0.05, 1.2), "prefill")
    finally:
        await runner.aclose()
    figures = (
        Figure("decode, tokens after the request, p95", _p95(decode), "tokens", at_most(1)),
        Figure("decode, wait / time of a token, p95", _p95_s(decode) / median(token_s)),
        Figure("prefill, chunks after the request, p95", _p95(prefill), "chunks", at_most(1)),
        Figure("prefill, wait, p95", 1000 * _p95_s(prefill), "ms", at_most(100)),
    )
    raw = {
        "decode_wait_s": spread([stop.seconds for stop in decode]),
        "decode_tokens": spread([stop.boundaries for stop in decode]),
        "token_s": spread(token_s),
        "prefill_wait_s": spread([stop.seconds for stop in prefill]),
        "prefill_chunks": spread([stop.boundaries for stop in prefill]),
    }
    return Report("stop-latency", figures, raw)


async def _stops(
    setting: Setting,
    runner: EngineRunner,
    sentences: int,
    tokens: int,
    samples: int,
    delay: tuple[float, float],
    phase: str,
) -> tuple[list[Stop], list[float]]:
    """The stops, and the times between two boundaries of the same run. `delay` is in seconds from a run's first boundary."""
    moments = random.Random(2)
    clock = setting.clock
    stops: list[Stop] = []
    steps: list[float] = []
    for serial in range(50 * samples):
        if len(stops) >= samples:
            break
        job = RunnerJob(
            id=f"{phase}-{serial}",
            cache_key=f"{phase}-{serial}",
            prompt=f"{prompts.note(serial, sentences)}\nA long story about all this. Once upon a time",
            max_tokens=tokens,
            sampling=Sampling(seed=1),
        )
        status = "stopped"
        while status == "stopped" and len(stops) < samples:
            times: list[float] = []
            begun = asyncio.Event()

            def emit(
                progress: RunnerProgress, times: list[float] = times, begun: asyncio.Event = begun
            ) -> None:
                # A decode counts from its first token on, and one step of it is awaited.
                if phase == "prefill" or progress.tokens_done:
                    times.append(clock.monotonic())
                if len(times) > (phase == "decode"):
                    begun.set()

            running = asyncio.create_task(runner.run(job, emit))
            starting = asyncio.create_task(begun.wait())
            await asyncio.wait((running, starting), return_when=asyncio.FIRST_COMPLETED)
            starting.cancel()
            await asyncio.wait((running,), timeout=moments.uniform(*delay))
            asked, before = clock.monotonic(), len(times)
            runner.stop(job.id)
            status = (await running).status
            steps += [b - a for a, b in itertools.pairwise(times)]
            if status == "stopped":
                stops.append(Stop(len(times) - before, clock.monotonic() - asked))
        runner.forget(job.id)
    return stops, steps


def _p95(stops: list[Stop]) -> float:
    return percentile([stop.boundaries for stop in stops], 95)


def _p95_s(stops: list[Stop]) -> float:
    return percentile([stop.seconds for stop in stops], 95)
