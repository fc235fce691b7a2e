"""A clock and an event loop on which a hundred seconds pass in one, the same in every process of the machine."""

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import Any

from data.clock import SystemClock

SPEED = 100
"""A lease of a minute lapses after 0.6 s, and a look every minute comes as often."""
_CLOCK = SystemClock()
_EPOCH = datetime(2100, 1, 1, tzinfo=UTC)
"""Later than any real moment, so that alarms on the machine's own wall clock stay silent."""


class FastClock:
    """Implements `Clock`."""

    def monotonic(self) -> float:
        return SPEED * _CLOCK.monotonic()

    def now(self) -> datetime:
        return _EPOCH + timedelta(seconds=self.monotonic())


class _Selector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout and timeout / SPEED)


class FastLoop(asyncio.SelectorEventLoop):
    """Sleeps and timeouts are so much shorter."""

    def __init__(self) -> None:
        super().__init__(_Selector())

    def time(self) -> float:
        return SPEED * super().time()
