"""Blocking work in a thread that a cancelled caller really ends."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _Stopped(Exception):
    """Raised inside the thread when nobody waits for its result any more."""


def after(start: int, step: Callable[[int], None]) -> Callable[[int], None]:
    """Progress of one part, told as progress of the whole."""
    return lambda done: step(start + done)


async def in_thread(
    work: Callable[[Callable[[int], None]], T],
    report: Callable[[int], None],
) -> T:
    """Runs `work(step)` in a thread. `work` calls `step(done)` often; `report(done)` then runs on the event loop.

    Cancelling the call makes the next `step` raise in the thread, and waits until the thread has left `work`.
    """
    loop = asyncio.get_running_loop()
    stopped = threading.Event()

    def step(done: int) -> None:
        if stopped.is_set():
            raise _Stopped
        loop.call_soon_threadsafe(report, done)

    running = loop.run_in_executor(None, work, step)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stopped.set()
        while not running.done():
            # Cancelled once more or not: what the thread holds (a slot, a file) is free only when it has left.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.exception()  # looked at, so that asyncio does not report it as forgotten
        raise
