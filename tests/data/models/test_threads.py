import asyncio
import threading
from collections.abc import Callable

import pytest

from data.models.threads import after, in_thread

WAIT_S = 120.0


def test_the_result_comes_back_and_progress_runs_on_the_loop() -> None:
    seen: list[tuple[int, bool]] = []
    main = threading.get_ident()

    def work(step: Callable[[int], None]) -> str:
        after(10, step)(1)
        return "done" if threading.get_ident() != main else "not in a thread"

    async def scenario() -> str:
        result = await in_thread(work, lambda done: seen.append((done, threading.get_ident() == main)))
        await asyncio.sleep(0)
        return result

    assert asyncio.run(scenario()) == "done"
    assert seen == [(11, True)]


def test_errors_come_back() -> None:
    def work(step: Callable[[int], None]) -> None:
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        asyncio.run(in_thread(work, lambda done: None))


def test_a_cancelled_call_returns_only_when_the_thread_has_left() -> None:
    async def scenario() -> None:
        inside, go_on, left = asyncio.Event(), threading.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work(step: Callable[[int], None]) -> None:
            loop.call_soon_threadsafe(inside.set)
            try:
                go_on.wait(WAIT_S)
                step(1)
                raise AssertionError("the thread went on although nobody waits for it")
            finally:
                left.set()

        running = asyncio.create_task(in_thread(work, lambda done: None))
        await inside.wait()
        for _ in range(2):  # twice: impatience must not leave the thread behind
            running.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not running.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert left.is_set()

    asyncio.run(scenario())
