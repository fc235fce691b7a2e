"""An event loop whose time passes only when nothing is left to do, or when a test says so."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualClock:
    """Implements `Clock`."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


class _Selector(selectors.SelectSelector):
    """Instead of blocking it moves the clock."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everything waits for something that no timer will bring")
        self._clock.seconds += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_Selector(clock))
        self._virtual = clock

    def time(self) -> float:
        return self._virtual.seconds


def run_virtually(clock: VirtualClock, work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on the clock's time."""
    with asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner:
        return runner.run(work)
