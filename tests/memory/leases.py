"""Leases that hold, or are lost when a test says so."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from domain.entities.gana import Tick
from domain.errors import TickLost


class QuietLeases:
    """Implements `Leases` without renewing anything."""

    def __init__(self) -> None:
        self.held: list[Tick] = []
        self.lose = False

    def hold(self, tick: Tick) -> AbstractAsyncContextManager[None]:
        return self._hold(tick)

    @asynccontextmanager
    async def _hold(self, tick: Tick) -> AsyncIterator[None]:
        self.held.append(tick)
        yield
        if self.lose:
            raise TickLost("Another process took the tick over.")
