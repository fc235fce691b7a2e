"""Fires Ganas while the app is open: at their due times, and a moment after new input.

What is due is in the database and nowhere else. This object only decides when to look: at the next due time, soon after
a note was saved, and every `NEWS_S` in any case, so that neither a sleeping machine nor a clock that was set loses a tick.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from data.clock import Clock
from data.gana.wakeups import Wakeups
from domain.entities.gana import REACTION_S, GanaRun
from domain.errors import UniunError
from domain.repositories.ganas import GanaRepository
from domain.usecases.gana import GanaEngine
from domain.usecases.gana_calendar import Fire, GanaCalendar

NEWS_S = 15.0
"""Notes that another program saved, a terminal for example, are found so late at most."""
AGAIN_S = 60.0
"""After a run that failed or was cut off."""
FIRST_LOOKS_S = 5.0
"""After the first look: the background process may just be giving a tick back."""
ASLEEP = timedelta(minutes=3)
"""Longer than this between two looks, and the machine was asleep, or its clock was set."""
REACT_AGAIN_S = 10.0
"""After a reaction that was cut off, before its input is looked at again."""
AT_ONCE = 4
"""Ganas whose time has just come; the scheduler shares the model among them."""
CATCH_UP_PAUSE_S = 10.0
"""After days off, missed runs come one at a time, and other work comes between them."""
LONGEST_BURST_S = 30.0
"""New input that never stops is reacted to all the same."""


class GanaTicker:
    """`run` it until it is cancelled; a run that is cut off leaves its tick due."""

    def __init__(
        self, calendar: GanaCalendar, engine: GanaEngine, ganas: GanaRepository, clock: Clock
    ) -> None:
        self._calendar = calendar
        self._engine = engine
        self._ganas = ganas
        self._clock = clock
        self._bell = asyncio.Event()
        self._runs: dict[str, asyncio.Task[GanaRun]] = {}
        self._catching_up: str | None = None
        self._catch_up_from = 0.0
        self._looked_at: datetime | None = None
        self._awake_since = clock.now()
        self._news_since = 0.0
        self._react_at: float | None = None
        self._not_before: dict[str, float] = {}
        """Ganas whose run was cut off: their tick is due still, and must not be tried without end."""
        self.error: str | None = None
        """Why nothing fires at present; none when all is well."""

    def wake(self, note_ids: Sequence[str] = ()) -> None:
        """Notes were saved, or a Gana was changed."""
        if note_ids:
            now = self._clock.monotonic()
            if self._react_at is None:
                self._news_since = now
                self._bell.set()
            self._react_at = min(now + REACTION_S, self._news_since + LONGEST_BURST_S)
        else:
            self._bell.set()

    async def run(self) -> None:
        """Until cancelled."""
        wakeups = Wakeups(self._bell)
        wakeups.start()
        longest_s = FIRST_LOOKS_S
        settled = False
        try:
            while True:
                self._bell.clear()
                try:
                    if not settled:
                        await self._ganas.settle_running(self._clock.now(), by="app")
                        settled = True
                    await self.look()
                    wakeups.at(await self._calendar.next_due())
                    self.error = None
                except UniunError as error:
                    self.error = str(error)
                await self._rest(longest_s)
                longest_s = NEWS_S
        finally:
            wakeups.stop()
            await self.aclose()

    async def look(self) -> None:
        """Starts whatever is due now."""
        now = self._clock.now()
        before, self._looked_at = self._looked_at, now
        if before is None or not timedelta(0) <= now - before <= ASLEEP:
            self._awake_since = now
            await self._calendar.mend()
        self._collect()
        for gana in await self._calendar.due():
            if gana.id in self._runs or self._clock.monotonic() < self._not_before.get(gana.id, 0.0):
                continue
            missed = self._calendar.missed(gana, self._awake_since) and gana.draft.missed_runs != "skip"
            if not self._room(catching_up=missed):
                continue
            fire = await self._calendar.take(gana, self._awake_since)
            if fire is not None:
                self._start(fire, catching_up=missed)
        if self._react_at is None or self._clock.monotonic() >= self._react_at:
            self._react_at = None
            while self._room(catching_up=False):
                fire = await self._calendar.react()
                if fire is None:
                    break
                self._start(fire, catching_up=False)

    async def idle(self) -> None:
        """Returns when no run is left; what they failed with is in their log."""
        while self._runs:
            await asyncio.wait(self._runs.values())
            self._collect()

    async def aclose(self) -> None:
        """Cuts off what runs; the ticks stay due."""
        for task in self._runs.values():
            task.cancel()
        await asyncio.gather(*self._runs.values(), return_exceptions=True)
        self._runs.clear()

    def _room(self, *, catching_up: bool) -> bool:
        if catching_up:
            return self._catching_up is None and self._clock.monotonic() >= self._catch_up_from
        return len(self._runs) - (self._catching_up is not None) < AT_ONCE

    def _start(self, fire: Fire, *, catching_up: bool) -> None:
        gana_id = fire.gana.id
        if catching_up:
            self._catching_up = gana_id
        task = asyncio.ensure_future(
            self._engine.process_gana(fire.gana, "cron", tick=fire.tick, deadline=fire.deadline)
        )
        task.add_done_callback(lambda done: self._bell.set())
        self._runs[gana_id] = task

    def _collect(self) -> None:
        for gana_id in [gana_id for gana_id, task in self._runs.items() if task.done()]:
            task = self._runs.pop(gana_id)
            if gana_id == self._catching_up:
                self._catching_up = None
                self._catch_up_from = self._clock.monotonic() + CATCH_UP_PAUSE_S
            error = None if task.cancelled() else task.exception()
            if isinstance(error, UniunError):
                self.error = str(error)
                self._react_at = self._clock.monotonic() + AGAIN_S
            elif error is not None:
                raise error
            if error is not None or task.cancelled() or task.result().reason == "cancelled":
                self._not_before[gana_id] = self._clock.monotonic() + AGAIN_S
                if self._react_at is None:
                    self._react_at = self._clock.monotonic() + REACT_AGAIN_S
            else:
                self._not_before.pop(gana_id, None)

    async def _rest(self, longest_s: float) -> None:
        """Until the bell rings, a reaction is due, or a missed run may follow."""
        now = self._clock.monotonic()
        moments = [now + longest_s]
        if self._react_at is not None:
            moments.append(self._react_at)
        if self._catching_up is None and self._catch_up_from > now:
            moments.append(self._catch_up_from)
        try:
            async with asyncio.timeout(max(0.0, min(moments) - now)):
                await self._bell.wait()
        except TimeoutError:
            pass
