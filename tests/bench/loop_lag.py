"""How late the event loop wakes up while it streams a chat before a waiting backlog."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from domain.errors import JobCancelled
from domain.repositories.scheduler_coordinator import JobHandle
from tests.bench import prompts
from tests.bench.figures import Figure, Report, at_most, percentile, spread
from tests.bench.setting import Setting, timed

STEP_S = 0.005
BACKLOG = 1000


async def run(setting: Setting) -> Report:
    """In turns with a loop that has nothing else to do. Every waiting job has a reader, as in the program."""
    idle: list[float] = []
    busy: list[float] = []
    model = setting.model.name
    backlog, tokens = (20, 8) if setting.quick else (BACKLOG, 60)
    async with setting.dispatcher() as (dispatcher, _):
        for turn in range(setting.count(4)):
            idle += await _lag_during(setting, asyncio.sleep(0.2 if setting.quick else 2.0))
            requests = prompts.backlog(model, 2000 * turn, each=max(1, backlog // 3))
            handles = prompts.submit(dispatcher, requests)
            readers = [asyncio.create_task(_read(handle)) for handle in handles]
            busy += await _lag_during(setting, asyncio.sleep(0.2 if setting.quick else 1.0))

            async def talk(first: int = 2000 * turn) -> None:
                for number in range(first, first + setting.count(3)):
                    await timed(setting.clock, dispatcher, prompts.chat(model, number, max_tokens=tokens))

            busy += await _lag_during(setting, talk())
            await prompts.cancel(handles)
            await asyncio.gather(*readers)
    figures = (
        Figure("late wake-up while generating, p99", 1000 * percentile(busy, 99), "ms", at_most(10)),
        Figure("the same / idle loop, p99", percentile(busy, 99) / percentile(idle, 99)),
    )
    raw = {"backlog_jobs": len(requests), "idle_s": spread(idle), "generating_s": spread(busy)}
    return Report("loop-lag", figures, raw)


async def _lag_during(setting: Setting, work: Coroutine[Any, Any, Any]) -> list[float]:
    """Seconds by which each wake-up was late, until the work is done."""
    clock = setting.clock
    late: list[float] = []
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            due = clock.monotonic() + STEP_S
            await asyncio.sleep(STEP_S)
            late.append(max(0.0, clock.monotonic() - due))
        await task
    finally:
        task.cancel()
    return late


async def _read(handle: JobHandle) -> None:
    try:
        async for _ in handle.events():
            pass
    except JobCancelled:
        return
