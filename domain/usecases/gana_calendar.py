"""Which Ganas are to run now, and for which of their due times."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Literal

from domain.entities.entity import Entity
from domain.entities.gana import REACTION_S, RUNS_PER_GANA, Gana, GanaRun, Tick
from domain.repositories.due_times import DueTimes
from domain.repositories.ganas import GanaRepository
from domain.repositories.identity import Identities
from domain.repositories.notes import NoteRepository
from domain.usecases.gana_input import INPUT_NOTES, left_alone, watches

CATCH_UP_RUNS = 24
"""Of one Gana that wants all its missed runs."""
GRACE = timedelta(minutes=1)
"""A due time so shortly before the program could see it was not missed."""
CLOCK_WAS_WRONG = timedelta(hours=25)
"""Where wall times are given, a clock that is set back by less is lived through: none of them comes twice."""
REACT_AGAIN = timedelta(minutes=10)
"""At the latest, after a reaction that came to nothing, unless a note was written since. A note that came without being
written, as from a folder, waits as long."""
FAILED_AGAIN = timedelta(minutes=1)
"""Three times as long each further time. One that was killed or gave way comes again within seconds, in the same way."""


class Fire(Entity):
    """A claimed tick that is to be run now."""

    gana: Gana
    tick: Tick
    deadline: datetime


class GanaCalendar:
    """The missed-run policies, over claims that hold between processes."""

    def __init__(
        self,
        ganas: GanaRepository,
        notes: NoteRepository,
        due_times: DueTimes,
        identities: Identities,
        by: Literal["app", "background"] = "app",
    ) -> None:
        self._ganas = ganas
        self._notes = notes
        self._due_times = due_times
        self._identities = identities
        self._by = by

    async def due(self, limit: int = 100) -> tuple[Gana, ...]:
        """Ganas whose time has come, longest overdue first."""
        return await self._ganas.due(self._identities.now(), limit)

    def left_to_app(self, gana: Gana) -> bool:
        """Whether it is not for this process; its tick stays due."""
        return self._by == "background" and gana.draft.needs_app

    def missed(self, gana: Gana, awake_since: datetime) -> bool:
        """Whether its newest due time came while no program was awake to see it."""
        fires = self._fires(gana, self._identities.now(), 1)
        return bool(fires) and fires[-1] < awake_since - GRACE

    async def take(self, gana: Gana, awake_since: datetime) -> Fire | None:
        """Claims a due Gana's tick; none if somebody else was faster, or if its missed run is to be skipped.

        `latest` and `skip` fold all due times that have passed into one tick; `all` takes the oldest.
        """
        now = self._identities.now()
        fires = self._fires(gana, now, CATCH_UP_RUNS)
        if not fires or gana.due_at is None:
            return None
        if gana.draft.missed_runs == "all":
            rest = [fire for fire in fires if fire > gana.due_at]
            deadline = gana.due_at
            following = rest[0] if rest else self._due_times.next_after(gana.draft, fires[-1])
        else:
            deadline = fires[-1]
            following = self._due_times.next_after(gana.draft, deadline)
        tick = await self._ganas.claim(gana.id, gana.due_at, following, by=self._by, now=now)
        if tick is None:
            return None
        if gana.draft.missed_runs == "skip" and self.missed(gana, awake_since):
            await self._skip(gana, tick, now)
            return None
        return Fire(gana=gana, tick=tick, deadline=deadline)

    async def react(self) -> Fire | None:
        """Claims one reactive Gana that has unread input which nobody is writing still; none if there is none."""
        now = self._identities.now()
        for gana in await self._ganas.all():
            if not gana.enabled or not gana.draft.reactive or self.left_to_app(gana):
                continue
            if await self._wants_to_react(gana, now):
                tick = await self._ganas.claim(gana.id, None, None, by=self._by, now=now)
                if tick is not None:
                    return Fire(gana=gana, tick=tick, deadline=now)
        return None

    async def next_due(self) -> datetime | None:
        """The next tick that is still to come, of any Gana."""
        now = self._identities.now()
        times = [gana.due_at for gana in await self._ganas.all() if gana.enabled and gana.due_at is not None]
        return min((time for time in times if time > now), default=None)

    async def mend(self) -> int:
        """Brings back what a clock that was wrong has left in the future; returns of how many Ganas."""
        now = self._identities.now()
        mended = 0
        for gana in await self._ganas.all():
            if not gana.enabled:
                continue
            following = self._due_times.next_after(gana.draft, now)
            if gana.due_at is None or following is None or gana.due_at <= following:
                continue
            if gana.draft.interval_minutes is not None or await self._was_ahead(gana, now + CLOCK_WAS_WRONG):
                await self._ganas.put(gana.model_copy(update={"due_at": following}))
                mended += 1
        return mended

    async def _was_ahead(self, gana: Gana, moment: datetime) -> bool:
        runs = await self._ganas.runs(gana.id, limit=RUNS_PER_GANA)
        return max([gana.created_at, *(run.started_at for run in runs)]) > moment

    def _fires(self, gana: Gana, now: datetime, limit: int) -> tuple[datetime, ...]:
        if gana.due_at is None:
            return ()
        return self._due_times.missed(gana.draft, gana.due_at, now, limit)

    async def _wants_to_react(self, gana: Gana, now: datetime) -> bool:
        if not watches(gana.draft):
            return False
        runs = await self._ganas.runs(gana.id, limit=RUNS_PER_GANA)
        failed = None
        # A run of the future is from a clock that was wrong.
        if runs and -REACT_AGAIN < now - runs[0].started_at < pause_after(runs):
            failed = runs[0].started_at
        if failed is not None and not await self._unread(gana, now, since=failed):
            return False
        return await self._unread(gana, now)

    async def _unread(self, gana: Gana, now: datetime, *, since: datetime | None = None) -> bool:
        """Whether there is anything (of what was changed since) that nobody is writing still."""
        found = await self._notes.arrived_since(
            gana.cursor,
            tag=gana.draft.input_tag,
            manas_id=gana.draft.input_manas_id,
            limit=INPUT_NOTES,
            changed=(since, now) if since is not None else None,  # and not before the clock was set back
        )
        return bool(left_alone(found, now))

    async def _skip(self, gana: Gana, tick: Tick, now: datetime) -> None:
        run = GanaRun(
            id=self._identities.new_id(),
            gana_id=gana.id,
            due_at=tick.due_at,
            status="skipped",
            reason="missed",
            detail="The program was not running when it was due.",
            started_at=now,
            by=self._by,
        )
        await self._ganas.complete(tick, run, cursor=None, publish=None)


def pause_after(runs: Sequence[GanaRun]) -> timedelta:
    """How long after the start of its newest run, the first of these, a Gana leaves the same input alone."""
    if runs[0].status == "succeeded" or runs[0].reason in ("nothing_to_say", "no_new_input"):
        return timedelta(0)
    if _lost(runs[0]):
        again, alike = timedelta(seconds=REACTION_S), _lost
    elif tries_again(runs[0]):
        again, alike = FAILED_AGAIN, tries_again
    else:  # the user has stopped it, for example
        return REACT_AGAIN
    again *= int(3 ** sum(1 for _ in takewhile(alike, runs[1:])))
    return min(REACT_AGAIN, again)


def _lost(run: GanaRun) -> bool:
    """Cut off; or so that not even that could be logged, else its claim would keep others from asking."""
    return run.reason == "cancelled" or run.status == "running"


def tries_again(run: GanaRun) -> bool:
    """Whether it failed in a way that may be over the next time."""
    return run.reason in ("error", "no_model")
