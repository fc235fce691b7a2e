"""Work that goes on beside the app for as long as it is open."""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self


class Loops:
    """Starts every loop when entered and cancels them when left.

    A loop that ends with an error leaves the app and the other loops alone; the first such error is raised when
    everything else is done, unless something else is on its way already.
    """

    def __init__(self, *loops: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loops = loops
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(loop()) for loop in self._loops]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        failed = [end for end in ends if isinstance(end, Exception)]
        if failed and error is None:
            raise failed[0]
