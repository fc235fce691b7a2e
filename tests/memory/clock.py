"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta


class HandClock:
    """Implements `Clock`. A machine that sleeps, or whose clock is set, moves its wall clock alone."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.wall = start
        self.steady = 1_000.0

    def monotonic(self) -> float:
        return self.steady

    def now(self) -> datetime:
        return self.wall

    def run(self, seconds: float) -> None:
        """Time passes."""
        self.steady += seconds
        self.wall += timedelta(seconds=seconds)

    def jump(self, **by: float) -> None:
        """The wall clock is somewhere else: `jump(days=3)`, `jump(hours=-2)`."""
        self.wall += timedelta(**by)
