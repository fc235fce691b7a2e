"""When a Gana is due; calendars and time zones stay behind this port."""

from datetime import datetime
from typing import Protocol

from domain.entities.gana import GanaDraft


class DueTimes(Protocol):
    """All times are aware. Daylight saving: a time that does not exist is skipped forward, one that exists twice fires once."""

    def validate(self, draft: GanaDraft) -> None:
        """Raises `InvalidRequest` saying what is wrong with a cron expression."""
        ...

    def local(self, wall: datetime) -> datetime:
        """A naive time on the machine's wall clock, made aware."""
        ...

    def wall(self, moment: datetime) -> datetime:
        """What the machine's wall clock shows at a moment, without a zone."""
        ...

    def next_after(self, draft: GanaDraft, after: datetime) -> datetime | None:
        """The first due time strictly after a moment; none if there is none."""
        ...

    def missed(self, draft: GanaDraft, due_at: datetime, now: datetime, limit: int) -> tuple[datetime, ...]:
        """Due times from `due_at` to `now`, both included, oldest first; the newest `limit` of them."""
        ...
