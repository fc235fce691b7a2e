"""Ganas, their ticks and their run log."""

from datetime import datetime
from typing import Protocol

from domain.entities.gana import Gana, GanaRun, Tick
from domain.entities.note import Note


class GanaRepository(Protocol):
    """Every method is one transaction; claims hold between processes."""

    async def put(self, gana: Gana) -> None:
        """Creates or replaces."""
        ...

    async def get(self, gana_id: str) -> Gana:
        """By id or by name. Raises `GanaNotFound`."""
        ...

    async def all(self) -> tuple[Gana, ...]:
        """By name."""
        ...

    async def delete(self, gana_id: str) -> None:
        """With its runs. Raises `GanaNotFound`."""
        ...

    async def due(self, now: datetime, limit: int) -> tuple[Gana, ...]:
        """Enabled Ganas whose due time has come, longest overdue first.

        Among them those whose claim has run out; their `due_at` is then the due time of that claim. None that runs.
        """
        ...

    async def claim(
        self,
        gana_id: str,
        due_at: datetime | None,
        next_due_at: datetime | None,
        *,
        by: str,
        now: datetime,
    ) -> Tick | None:
        """Takes one due time for this process and sets the next; none if another was faster, or the Gana runs already.

        With `due_at` none it takes the Gana itself, for a run outside the calendar: the due time stays as it is,
        `next_due_at` means nothing, and a Gana that is off may be taken too.
        The claim is a lease: one whose process died is taken over, at once if the implementation can tell that it is dead,
        else after a time; its run is then logged as cancelled. A run outside the calendar that takes over a tick leaves that
        tick due.
        """
        ...

    async def renew(self, tick: Tick, now: datetime) -> bool:
        """Keeps the lease alive; false when it has been lost."""
        ...

    async def release(self, tick: Tick) -> None:
        """Leaves the tick due: whoever comes next may claim it. Harmless when the claim has been lost."""
        ...

    async def complete(
        self, tick: Tick | None, run: GanaRun, *, cursor: int | None, publish: Note | None
    ) -> bool:
        """Logs the run, moves the cursor (when given), publishes the note and ends the claim, all or nothing.

        False, and nothing published, if the tick was lost to another process or completed already. Old runs are pruned.
        """
        ...

    async def put_run(self, run: GanaRun) -> None:
        """Creates or replaces a line of the log, and prunes old ones."""
        ...

    async def runs(self, gana_id: str | None = None, *, limit: int = 100) -> tuple[GanaRun, ...]:
        """Newest first."""
        ...

    async def settle_running(self, now: datetime, *, by: str) -> int:
        """Runs that a dead process left `running` become failed (`cancelled`); returns how many. Called at start."""
        ...
