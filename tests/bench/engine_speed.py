"""Prefill and decode speed, against llama-server on the same file with the same threads, in turns."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from data.inference.llama_backend import LlamaBackend
from data.inference.options import DEFAULT_CONTEXT, EngineOptions
from data.inference.supervisor import EngineRunner
from data.inference.token_loop import TokenLoop
from domain.entities.llm import Sampling
from domain.errors import EngineError
from domain.repositories.inference_runner import RunnerJob, RunnerProgress
from tests.bench import peer, prompts
from tests.bench.figures import Figure, Report, at_least, median, spread
from tests.bench.setting import Setting, threads


@dataclass(frozen=True)
class Speed:
    """Tokens per second, as seen by whoever reads the stream. The prefill includes the first token's own step."""

    prompt_tokens: int
    prefill_tps: float
    decode_tps: float


def speed(prompt_tokens: int, tokens: int, first_s: float, last_s: float) -> Speed:
    return Speed(prompt_tokens, prompt_tokens / first_s, (tokens - 1) / (last_s - first_s))


async def run(setting: Setting) -> Report:
    """Three ways to the same tokens: the app's (engine process and pipe), the token loop alone, and the peer's."""
    path = setting.model.gguf_path
    if path is None:
        raise EngineError(f"Model {setting.model.name} has no GGUF file, which the comparison needs.")
    tokens, sentences = (8, 4) if setting.quick else (128, 36)
    options = EngineOptions(backend="llama.cpp", threads=threads())
    runner = EngineRunner(setting.store, options, setting.clock)
    backend = LlamaBackend(path, options)
    alone = _Alone(setting, TokenLoop(backend, options, setting.clock))
    ours: list[Speed] = []
    inside: list[Speed] = []
    theirs: list[Speed] = []
    own_words: list[dict[str, float]] = []
    try:
        await runner.load(setting.model.name)
        async with peer.serving(path, threads(), DEFAULT_CONTEXT, setting.clock) as server:

            async def ask_ours(number: int, prompt: str) -> None:
                ours.append(await _through_runner(setting, runner, number, prompt, tokens))

            async def ask_inside(number: int, prompt: str) -> None:
                inside.append(await asyncio.to_thread(alone.answer, number, prompt, tokens))

            async def ask_theirs(number: int, prompt: str) -> None:
                answer = await server.complete(prompt, tokens)
                theirs.append(
                    speed(answer.prompt_tokens, answer.tokens, answer.first_token_s, answer.last_token_s)
                )
                own_words.append(answer.timings)

            ways: list[Callable[[int, str], Awaitable[None]]] = [ask_ours, ask_theirs, ask_inside]
            # The first round warms up; after it everybody goes first in turn.
            for number in range(1 + setting.count(12)):
                prompt = f"{prompts.note(number, sentences)}\nA long story about all this. Once upon a time"
                for at in range(len(ways)):
                    await ways[(number + at) % len(ways)](number, prompt)
    finally:
        await runner.aclose()
        backend.close()
    del ours[0], inside[0], theirs[0], own_words[0]
    if {s.prompt_tokens for s in ours} != {s.prompt_tokens for s in theirs}:
        raise EngineError("The two engines read the prompt as different numbers of tokens.")
    return Report(
        "engine-speed", tuple(_figures(ours, inside, theirs)), _raw(ours, inside, theirs, own_words)
    )


def _figures(ours: list[Speed], inside: list[Speed], theirs: list[Speed]) -> list[Figure]:
    figures: list[Figure] = []
    for name in ("decode", "prefill"):
        field = f"{name}_tps"
        for what, speeds, goal in (("app", ours, at_least(1.0)), ("token loop alone", inside, None)):
            pairs = [getattr(a, field) / getattr(b, field) for a, b in zip(speeds, theirs, strict=True)]
            figures.append(
                Figure(f"{name}, {what} / llama-server, median of pairs", median(pairs), goal=goal)
            )
    return figures


def _raw(
    ours: list[Speed], inside: list[Speed], theirs: list[Speed], own_words: list[dict[str, float]]
) -> dict[str, object]:
    raw: dict[str, object] = {"threads": threads(), "prompt_tokens": ours[0].prompt_tokens}
    for name, speeds in (("app", ours), ("token_loop_alone", inside), ("llama_server", theirs)):
        raw[name] = {
            "prefill_tps": spread([s.prefill_tps for s in speeds]),
            "decode_tps": spread([s.decode_tps for s in speeds]),
        }
    raw["llama_server_by_its_own_timings"] = {
        "prefill_tps": median([t["prompt_per_second"] for t in own_words]),
        "decode_tps": median([t["predicted_per_second"] for t in own_words]),
    }
    return raw


def _job(number: int, prompt: str, tokens: int) -> RunnerJob:
    return RunnerJob(
        id=f"speed-{number}",
        cache_key=f"{number}",
        prompt=prompt,
        max_tokens=tokens,
        sampling=Sampling(seed=1),
    )


async def _through_runner(
    setting: Setting, runner: EngineRunner, number: int, prompt: str, tokens: int
) -> Speed:
    times: list[float] = []
    start = setting.clock.monotonic()

    def emit(progress: RunnerProgress) -> None:
        if progress.tokens_done > len(times):
            times.append(setting.clock.monotonic() - start)

    outcome = await runner.run(_job(number, prompt, tokens), emit)
    return speed(outcome.usage.prompt_tokens, len(times), times[0], times[-1])


@dataclass(frozen=True)
class _Alone:
    """The token loop in this process: no pipe, no JSON, no event loop."""

    setting: Setting
    loop: TokenLoop

    def answer(self, number: int, text: str, tokens: int) -> Speed:
        times: list[float] = []
        clock = self.setting.clock
        start = clock.monotonic()

        def at_boundary(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> bool:
            if token is not None:
                times.append(clock.monotonic() - start)
            return False

        outcome = self.loop.run(_job(number, text, tokens), [], at_boundary)
        return speed(outcome.usage.prompt_tokens, len(times), times[0], times[-1])
