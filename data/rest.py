"""When work that has time (a backlog of embeddings, an import) lets an answer go first, on the cores that both would use."""

import asyncio
import platform
from collections.abc import Awaitable, Callable

from data.clock import Clock

LONGEST_REST_S, TURN_S = 30.0, 10.0
"""Answers without end leave such work a quarter of the time."""
LOOK_S = 0.25


def shares_cores() -> bool:
    """Whether such work takes cores from the language model. On Apple silicon that computes on the GPU, and macOS keeps
    background work on the efficiency cores."""
    return not (platform.system() == "Darwin" and platform.machine() == "arm64")


class Rest:
    """Rests while `somebody_waits`, and after the longest rest works for a turn all the same."""

    def __init__(
        self,
        somebody_waits: Callable[[], bool],
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._somebody_waits = somebody_waits
        self._clock = clock
        self._sleep = sleep
        self._turn_ends = float("-inf")

    def due(self) -> bool:
        """Whether to stop before the next note."""
        return self._somebody_waits() and self._clock.monotonic() >= self._turn_ends

    async def over(self) -> None:
        """Returns at once unless a rest is due, else at its end."""
        ends = self._clock.monotonic() + LONGEST_REST_S
        while self.due():
            if self._clock.monotonic() >= ends:
                self._turn_ends = self._clock.monotonic() + TURN_S
                return
            await self._sleep(LOOK_S)
