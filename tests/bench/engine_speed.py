"""Prefill and decode speed, against llama-server on the same file with the same threads, in turns."""

from collections.abc import Awaitable, Callable

from data.inference.options import DEFAULT_CONTEXT, EngineOptions
from data.inference.process import ENGINE
from data.inference.supervisor import EngineRunner
from domain.errors import EngineError
from domain.repositories.inference_runner import RunnerProgress
from tests.bench import llama_server, prompts, token_loop
from tests.bench.figures import Figure, Report, at_least, median, spread
from tests.bench.setting import Setting, threads
from tests.bench.token_loop import Speed

OURS, ALONE, SHIPPED, SAME = (
    "app",
    "token loop alone",
    "llama-server",
    "llama-server with the engine's environment",
)


async def run(setting: Setting) -> Report:
    """The same prompts through the app (engine process and pipe), the token loop alone, and the peer.

    The peer runs twice, as it comes and with the environment that the engine process gets. The goal is held against
    the better of the two, so that the spin count of OpenMP's barriers decides nothing in our favour.
    """
    path = setting.model.gguf_path
    if path is None:
        raise EngineError(f"Model {setting.model.name} has no GGUF file, which the comparison needs.")
    tokens, sentences = (8, 4) if setting.quick else (96, 20)
    runner = EngineRunner(setting.store, EngineOptions(backend="llama.cpp", threads=threads()), setting.clock)
    speeds: dict[str, list[Speed]] = {}
    try:
        await runner.load(setting.model.name)
        async with (
            token_loop.running(path, threads()) as alone,
            llama_server.serving(path, threads(), DEFAULT_CONTEXT, setting.clock, {}) as shipped,
            llama_server.serving(path, threads(), DEFAULT_CONTEXT, setting.clock, ENGINE.environment) as same,
        ):
            ways: list[tuple[str, Callable[[int, str, int], Awaitable[Speed]]]] = [
                (OURS, lambda number, prompt, n: _through_runner(setting, runner, number, prompt, n)),
                (SHIPPED, shipped.complete),
                (ALONE, alone.complete),
                (SAME, same.complete),
            ]
            # The first round warms up; after it everybody goes first in turn.
            for number in range(1 + setting.count(12)):
                prompt = f"{prompts.note(number, sentences)}\nA long story about all this. Once upon a time"
                for at in range(len(ways)):
                    name, complete = ways[(number + at) % len(ways)]
                    done = await complete(number, prompt, tokens)
                    if number:
                        speeds.setdefault(name, []).append(done)
    finally:
        await runner.aclose()
    if len({tuple(s.prompt_tokens for s in way) for way in speeds.values()}) > 1:
        raise EngineError("The engines read the prompt as different numbers of tokens.")
    raw: dict[str, object] = {
        "threads": threads(),
        "prompt_tokens": speeds[OURS][0].prompt_tokens,
        "tokens": tokens,
        "tps": {
            name: {
                "prefill": spread([s.prefill_tps for s in way]),
                "decode": spread([s.decode_tps for s in way]),
            }
            for name, way in speeds.items()
        },
    }
    return Report("engine-speed", tuple(_figures(speeds)), raw)


def _figures(speeds: dict[str, list[Speed]]) -> list[Figure]:
    figures: list[Figure] = []
    for phase in ("decode", "prefill"):
        for name, goal in ((OURS, at_least(1.0)), (ALONE, None)):
            against = {peer: _ratio(speeds[name], speeds[peer], phase) for peer in (SHIPPED, SAME)}
            worst = min(against, key=lambda peer: against[peer])
            figures.append(Figure(f"{phase}, {name} / {worst}, median of pairs", against[worst], goal=goal))
    return figures


def _ratio(ours: list[Speed], theirs: list[Speed], phase: str) -> float:
    field = f"{phase}_tps"
    return median([getattr(a, field) / getattr(b, field) for a, b in zip(ours, theirs, strict=True)])


async def _through_runner(
    setting: Setting, runner: EngineRunner, number: int, prompt: str, tokens: int
) -> Speed:
    times: list[float] = []
    start = setting.clock.monotonic()

    def emit(progress: RunnerProgress) -> None:
        if progress.tokens_done > len(times):
            times.append(setting.clock.monotonic() - start)

    outcome = await runner.run(token_loop.job(number, prompt, tokens), emit)
    return Speed.of(outcome.usage.prompt_tokens, len(times), times[0], times[-1])
