"""What chats cost the background beyond their own time: the same backlog with and without them, in turns."""

import asyncio
from dataclasses import dataclass

from data.scheduling.dispatcher import Dispatcher
from tests.bench import prompts
from tests.bench.figures import Figure, Report, at_least, median
from tests.bench.setting import Setting, timed

PERIOD_S = 10.0


@dataclass(frozen=True)
class Round:
    """One backlog run to its end."""

    seconds: float
    tokens: int
    chats: int
    chat_s: float
    """Device time of the chats."""
    preemptions: int

    @property
    def tps(self) -> float:
        """Background tokens per second of the time that the chats left."""
        return self.tokens / (self.seconds - self.chat_s)


async def run(setting: Setting) -> Report:
    """Whole backlogs rather than windows of time, so that no half-done job is counted on one side only."""
    each = 1 if setting.quick else 10
    period_s = 0.5 if setting.quick else PERIOD_S
    without: list[Round] = []
    with_chats: list[Round] = []
    async with setting.dispatcher() as (dispatcher, _):
        for pair in range(1 if setting.quick else 3):
            order = (None, period_s) if pair % 2 == 0 else (period_s, None)
            for at, period in enumerate(order):
                done = await _round(setting, dispatcher, 1000 * (2 * pair + at), each, period)
                (without if period is None else with_chats).append(done)
    pairs = [chats.tps / free.tps for chats, free in zip(with_chats, without, strict=True)]
    raw = {
        "pairs": pairs,
        "without_chats_tps": median([done.tps for done in without]),
        "with_chats_tps": median([done.tps for done in with_chats]),
        "chats": sum(done.chats for done in with_chats),
        "chat_device_s": sum(done.chat_s for done in with_chats),
        "preemptions": sum(done.preemptions for done in with_chats),
        "seconds": [done.seconds for pair in zip(without, with_chats, strict=True) for done in pair],
    }
    name = f"background tokens/s, chat every {PERIOD_S:g} s / none, less the chats' own time"
    return Report("background-throughput", (Figure(name, median(pairs), goal=at_least(0.95)),), raw)


async def _round(
    setting: Setting, dispatcher: Dispatcher, number: int, each: int, period_s: float | None
) -> Round:
    clock, model = setting.clock, setting.model.name
    start = clock.monotonic()
    handles = prompts.submit(dispatcher, prompts.backlog(model, number, each))
    waiting = asyncio.ensure_future(asyncio.gather(*(handle.result() for handle in handles)))
    chats: list[float] = []
    while period_s is not None and len(chats) < (2 if setting.quick else 100):
        await asyncio.wait((waiting,), timeout=period_s)
        if waiting.done():
            break
        request = prompts.chat(model, number + 500 + len(chats), max_tokens=30)
        chats.append((await timed(clock, dispatcher, request)).result.service_s)
    results = await waiting
    return Round(
        seconds=clock.monotonic() - start,
        tokens=sum(result.usage.completion_tokens for result in results),
        chats=len(chats),
        chat_s=sum(chats),
        preemptions=sum(result.preemptions for result in results),
    )
