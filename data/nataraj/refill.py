"""Keeps decks from running out while the app is open.

Cards are in the database as soon as they are written, so this object holds nothing that matters when it is killed.
"""

import asyncio
from collections.abc import Sequence

from data.clock import Clock
from domain.entities.nataraj import WHOLE_LIBRARY, DeckWork
from domain.errors import DatabaseError, UniunError
from domain.repositories.cards import CardRepository
from domain.repositories.work_claims import WorkClaims
from domain.usecases.nataraj import NatarajGenerator

LOW, FULL = 4, 8
"""Fewer cards than LOW, and the deck is filled up to FULL."""
DECKS = 8
"""The decks that were looked at last are kept filled, and that of the whole library."""
LOOK_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 3_600.0
"""A deck that could not be filled (no model, too few notes, nothing in common) is left alone, longer each time."""
DATABASE_PAUSE_S = 60.0
"""At most so long for want of the database: its server comes back without ringing."""


class DeckRefill:
    """`run` it until it is cancelled."""

    def __init__(
        self, generator: NatarajGenerator, cards: CardRepository, clock: Clock, claims: WorkClaims
    ) -> None:
        self._generator = generator
        self._cards = cards
        self._clock = clock
        self._claims = claims
        self._bell = asyncio.Event()
        self._decks: dict[str, None] = {WHOLE_LIBRARY: None}
        self._not_before: dict[str, float] = {}
        self._pause_s: dict[str, float] = {}
        self._filling: tuple[str, int] | None = None
        """The deck that is being filled, and the cards that are to lie in it."""
        self._exhausted: set[str] = set()
        self.hindrance: str | None = None
        """Why a deck was not filled; none when all is well."""

    def look_at(self, scope: str) -> None:
        """The user opened this deck, or took a card from it."""
        self._decks.pop(scope, None)
        self._decks[scope] = None
        while len(self._decks) > DECKS:
            oldest = next(each for each in self._decks if each != WHOLE_LIBRARY)
            del self._decks[oldest]
            self._not_before.pop(oldest, None)
            self._pause_s.pop(oldest, None)
        self._bell.set()

    def wake(self, note_ids: Sequence[str] = ()) -> None:
        """Notes were saved: where nothing could be drawn there may be something now."""
        self._not_before.clear()
        self._bell.set()

    async def work(self, scope: str) -> DeckWork:
        """As things stand now."""
        writing = 0
        if self._filling is not None and self._filling[0] == scope:
            writing = max(0, self._filling[1] - await self._lying(scope))
        return DeckWork(writing=writing, exhausted=scope in self._exhausted, hindrance=self.hindrance)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._bell.clear()
            await self.fill()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._bell.wait()
            except TimeoutError:
                pass

    async def fill(self) -> None:
        """Fills every deck that is low, the one looked at last first."""
        for scope in reversed(list(self._decks)):
            if self._clock.monotonic() < self._not_before.get(scope, 0.0):
                continue
            try:
                if await self._lying(scope) >= LOW:
                    continue
                async with self._claims.hold("deck", [scope]) as ours:
                    lying = await self._lying(scope)
                    if not ours or lying >= LOW:
                        continue  # another process fills it, or has just filled it
                    self._filling = scope, FULL
                    filled = await self._generator.fill_buffer(scope, FULL - lying)
            except UniunError as error:
                self.hindrance = str(error)
                self._leave_alone(scope, isinstance(error, DatabaseError))
                continue
            finally:
                self._filling = None
            self.hindrance = None
            (self._exhausted.add if filled.exhausted else self._exhausted.discard)(scope)
            if len(filled.cards) < FULL - lying:
                self._leave_alone(scope)
            else:
                self._pause_s.pop(scope, None)

    async def _lying(self, scope: str) -> int:
        return (await self._cards.counts(scope)).get("buffered", 0)

    def _leave_alone(self, scope: str, database: bool = False) -> None:
        longest = DATABASE_PAUSE_S if database else LONGEST_PAUSE_S
        pause = min(self._pause_s.get(scope, FIRST_PAUSE_S), longest)
        self._not_before[scope] = self._clock.monotonic() + pause
        self._pause_s[scope] = min(2 * pause, longest)
