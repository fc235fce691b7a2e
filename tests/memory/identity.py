"""Ids that count, and a wall clock that a test moves."""

from datetime import UTC, datetime, timedelta


class CountingIdentities:
    """Implements `Identities`: `id0001`, `id0002`, …; every look at the clock is one second later."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.at = start
        self.step = timedelta(seconds=1)
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"id{self._count:04}"

    def now(self) -> datetime:
        self.at += self.step
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()
