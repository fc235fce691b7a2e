"""An alarm clock on the wall clock, through APScheduler."""

import asyncio
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

_JOB = "next due time"


class Wakeups:
    """One job that rings `bell` at one moment. However late, it rings; whoever hears it asks the database what is due."""

    def __init__(self, bell: asyncio.Event) -> None:
        self._bell = bell
        self._scheduler = AsyncIOScheduler(timezone=UTC)

    def start(self) -> None:
        """On the running loop."""
        self._scheduler.start()

    def stop(self) -> None:
        """Harmless when it has not started."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def at(self, moment: datetime | None) -> None:
        """Replaces the moment; none rings no more."""
        if moment is not None:
            self._scheduler.add_job(
                self._ring,
                DateTrigger(run_date=moment),
                id=_JOB,
                replace_existing=True,
                misfire_grace_time=None,
            )
        elif self._scheduler.get_job(_JOB) is not None:
            self._scheduler.remove_job(_JOB)

    async def _ring(self) -> None:
        self._bell.set()
