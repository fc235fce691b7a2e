"""Reads pending notes in the background for as long as the app is open.

The list is in the database, so this object holds nothing that matters: killed at any moment, it begins again with what
is still on the list. Only a few notes are in the scheduler at once; a cancel or a restart costs no more than those.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from data.clock import Clock
from domain.errors import DatabaseError, JobCancelled, UniunError
from domain.repositories.knowledge import KnowledgeRepository
from domain.usecases.knowledge import OLD_TURN, Reading

IN_FLIGHT = 2
"""One runs and one waits, so that the device never idles between two notes."""
LOOK_PERIOD_S = 30.0
"""Another process, an import for example, changes notes without waking this one."""
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 600.0
DATABASE_PAUSE_S = 60.0
"""A database server that comes back does not ring, and all that was away was the list."""
_PACE_NOTES = 40
_LEAST_NOTES = 5
"""Fewer say nothing about the pace."""


class Backfill:
    """Implements `BackgroundReading`.

    Keeps `in_flight` extractions in the scheduler; backs off while the model, or anything else, is missing. While it is
    not `wanted` nothing is in there, and `wake` has it look again.
    """

    def __init__(
        self,
        extract: Callable[[str], Awaitable[Reading]],
        knowledge: KnowledgeRepository,
        clock: Clock,
        *,
        in_flight: int = IN_FLIGHT,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._extract = extract
        self._knowledge = knowledge
        self._clock = clock
        self._in_flight = in_flight
        self._wanted = wanted
        self._finished: deque[float] = deque(maxlen=_PACE_NOTES)
        """When the last ones were read, without a break between them."""
        self._woken = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[Reading]] = {}
        self._turns = 0
        """Notes that were begun."""
        self._not_before = 0.0
        self._pause_s = FIRST_PAUSE_S
        self.hindrance: str | None = None
        """Why nothing is read at present; none when all is well."""

    def paused(self) -> bool:
        return not self._wanted()

    def pace_s(self) -> float | None:
        if len(self._finished) < _LEAST_NOTES:
            return None
        return (self._finished[-1] - self._finished[0]) / (len(self._finished) - 1)

    def wake(self) -> None:
        """Notes have changed, or what was missing may be there now."""
        self._not_before = 0.0
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self._woken.clear()
                wait_s = await self._fill()
                await self._until_something_happens(wait_s)
                self._collect()
        finally:
            await self._drop()

    async def _drop(self) -> None:
        """What was begun stays on the list."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _fill(self) -> float:
        """Submits what there is room for; returns the seconds after which to look again unless something happens."""
        if not self._wanted():
            self._finished.clear()
            await self._drop()
            return LOOK_PERIOD_S
        left = self._not_before - self._clock.monotonic()
        if left > 0:
            return left
        try:
            while len(self._tasks) < self._in_flight and (note_id := await self._next()) is not None:
                self._tasks[note_id] = asyncio.ensure_future(self._extract(note_id))
                self._turns += 1
        except UniunError as error:
            self._back_off(error)
            return self._not_before - self._clock.monotonic()
        return LOOK_PERIOD_S

    async def _next(self) -> str | None:
        """A note that is not begun yet."""
        pending = await self._knowledge.pending(
            2 * self._in_flight, oldest=self._turns % OLD_TURN == OLD_TURN - 1
        )
        if not pending:
            self._finished.clear()
        return next((one.note_id for one in pending if one.note_id not in self._tasks), None)

    async def _until_something_happens(self, wait_s: float) -> None:
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait(
                {woken, *self._tasks.values()}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            woken.cancel()

    def _collect(self) -> None:
        for note_id in [note_id for note_id, task in self._tasks.items() if task.done()]:
            task = self._tasks.pop(note_id)
            error = task.exception() if not task.cancelled() else JobCancelled("cancelled")
            if error is None:
                # These say nothing new; without a pause they would be asked for at once again. What another process
                # has taken is on the list no more.
                self._settle(idle=task.result() in ("being_read", "gone", "not_pending"))
                if task.result() == "read":
                    self._finished.append(self._clock.monotonic())
            elif isinstance(error, UniunError):
                self._back_off(error)
            else:
                raise error

    def _settle(self, *, idle: bool) -> None:
        if idle:
            self._not_before = self._clock.monotonic() + FIRST_PAUSE_S
        else:
            self._pause_s = FIRST_PAUSE_S
            self.hindrance = None

    def _back_off(self, error: UniunError) -> None:
        self.hindrance = str(error)
        longest = DATABASE_PAUSE_S if isinstance(error, DatabaseError) else LONGEST_PAUSE_S
        pause = min(self._pause_s, longest)
        self._not_before = self._clock.monotonic() + pause
        self._pause_s = min(2 * pause, longest)
