"""The embedding lane: few at a time, first come first served, never a part of the language model's queue."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from domain.errors import QueueFull

T = TypeVar("T")


class EmbeddingQueue:
    """At most `concurrency` pieces of work run at once; at most `max_waiting` wait, in order of arrival."""

    def __init__(self, concurrency: int = 2, max_waiting: int = 1000) -> None:
        if concurrency < 1 or max_waiting < 0:
            raise ValueError("a lane needs room for one piece of work at least")
        self._concurrency = concurrency
        self._max_waiting = max_waiting
        self._running = 0
        self._turns: deque[asyncio.Future[None]] = deque()

    @property
    def concurrency(self) -> int:
        return self._concurrency

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return sum(not turn.done() for turn in self._turns)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Waits for its turn, then awaits `work()`. Its place is free again however the work or the wait ends.

        Raises `QueueFull`, or what the work raises.
        """
        await self._take_place()
        try:
            return await work()
        finally:
            self._free_place()

    async def _take_place(self) -> None:
        if self._running < self._concurrency:
            self._running += 1
            return
        if self.waiting >= self._max_waiting:
            raise QueueFull(self._max_waiting, self.waiting, "the embedding lane")
        turn = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):
                    self._turns.remove(turn)
            else:
                self._free_place()  # the turn came in the same moment as the cancellation
            raise

    def _free_place(self) -> None:
        """Hands the place to the first that still waits; it counts as running from now on, so nobody overtakes it."""
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1
