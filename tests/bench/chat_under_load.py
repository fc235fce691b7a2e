"""A chat on the busy machine against the same chat on the idle one, in turns."""

import asyncio
import random

from domain.errors import EngineError
from tests.bench import prompts
from tests.bench.figures import Figure, Report, at_most, median, percentile, spread
from tests.bench.setting import Setting, Timing, timed

CHUNK_S = 0.1
"""What a chat may wait for when it interrupts a prefill: one chunk."""
TOKENS = 30


async def run(setting: Setting) -> Report:
    """Pairs of chats, idle and loaded, whose prompts differ in a number only and share no prefix with anything."""
    delays = random.Random(1)
    clock, model = setting.clock, setting.model.name
    idle: list[Timing] = []
    loaded: list[Timing] = []
    in_prefill: list[bool] = []
    async with setting.dispatcher() as (dispatcher, runner):
        await timed(clock, dispatcher, prompts.chat(model, 99_999, max_tokens=TOKENS))
        for pair in range(setting.count(30)):
            number = 100 * pair
            idle.append(await timed(clock, dispatcher, prompts.chat(model, number, max_tokens=TOKENS)))
            background = prompts.submit(dispatcher, prompts.backlog(model, number))
            await asyncio.sleep(delays.uniform(0.2, 2.0))
            in_prefill.append(runner.prefilling)
            request = prompts.chat(model, number + 50, max_tokens=TOKENS)
            loaded.append(await timed(clock, dispatcher, request))
            await prompts.cancel(background)
    if any(timing.result.usage.completion_tokens < TOKENS for timing in idle + loaded):
        raise EngineError(f"An answer ended before its {TOKENS}th token.")
    allowed = [
        min(timing.result.wait_s, CHUNK_S) if prefill else 0.0
        for timing, prefill in zip(loaded, in_prefill, strict=True)
    ]
    figures: list[Figure] = []
    raw: dict[str, object] = {
        "prefills_interrupted": sum(in_prefill),
        "wait_s": spread([t.result.wait_s for t in loaded]),
    }
    for name, field, bound in (
        ("first token", "first_token_s", 1.25),
        (f"{TOKENS}th token", "last_token_s", 1.10),
    ):
        before = [getattr(timing, field) for timing in idle]
        under = [getattr(timing, field) for timing in loaded]
        less = [seconds - chunk for seconds, chunk in zip(under, allowed, strict=True)]
        figures += [
            Figure(
                f"{name}, loaded / idle, p95, less the interrupted chunk",
                percentile(less, 95) / percentile(before, 95),
                goal=at_most(bound),
            ),
            Figure(f"{name}, loaded / idle, p95", percentile(under, 95) / percentile(before, 95)),
            Figure(f"{name}, loaded / idle, median", median(under) / median(before)),
        ]
        raw[field] = {
            "idle": spread(before),
            "loaded": spread(under),
            "loaded_less_chunk": spread(less),
            "pairs": [list(pair) for pair in zip(before, under, strict=True)],
        }
    return Report("chat-under-load", tuple(figures), raw)
