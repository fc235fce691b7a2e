"""The only place that reads a clock. Everything else is given one, so that tests control time."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that never jumps, for durations, and the wall clock, for dates."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""
        ...

    def now(self) -> datetime:
        """The wall clock, aware."""
        ...


class SystemClock:
    """The machine's own."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)
