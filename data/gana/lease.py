"""Renews a claim while its work goes on."""

import asyncio
from types import TracebackType

from data.clock import Clock
from domain.entities.gana import Tick
from domain.errors import DatabaseError, TickLost
from domain.repositories.ganas import GanaRepository

RENEWAL_PERIOD_S = 15.0
"""A quarter of the lease or less, so that a busy machine loses none."""


class TickLeases:
    """Implements `Leases` with a task that renews."""

    def __init__(self, ganas: GanaRepository, clock: Clock, period_s: float = RENEWAL_PERIOD_S) -> None:
        self._ganas = ganas
        self._clock = clock
        self._period_s = period_s

    def hold(self, tick: Tick) -> "HeldTick":
        return HeldTick(self._ganas, self._clock, tick, self._period_s)


class HeldTick:
    """While entered, the claim is renewed; if that fails, the body is cancelled and `TickLost` raised."""

    def __init__(self, ganas: GanaRepository, clock: Clock, tick: Tick, period_s: float) -> None:
        self._ganas = ganas
        self._clock = clock
        self._tick = tick
        self._period_s = period_s
        self._lost = False
        self._body: asyncio.Task[object] | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._body = asyncio.current_task()
        self._renewing = asyncio.create_task(self._renew())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._renewing is not None
        assert self._body is not None
        self._renewing.cancel()
        await asyncio.gather(self._renewing, return_exceptions=True)
        if self._lost:
            # Ours is one of the cancellations; somebody else's stays in force.
            others = self._body.uncancel()
            if kind is None or (kind is asyncio.CancelledError and not others):
                raise TickLost(
                    "Another process took the tick over: this one gave no sign of life for too long."
                )

    async def _renew(self) -> None:
        assert self._body is not None
        while True:
            await asyncio.sleep(self._period_s)
            try:
                held = await self._ganas.renew(self._tick, self._clock.now())
            except DatabaseError:
                continue  # locked or full for the moment; `complete` decides in the end
            if not held:
                self._lost = True
                self._body.cancel()
                return
