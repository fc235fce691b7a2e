"""The deck."""

from collections.abc import Sequence
from typing import Protocol

from domain.entities.nataraj import Card, CardState


class CardRepository(Protocol):
    """Every method is one transaction."""

    async def put(self, card: Card) -> bool:
        """Stores a card; false if the scope has a live card of the same notes already (dropped ones are replaced)."""
        ...

    async def get(self, card_id: str) -> Card:
        """Raises `CardNotFound`."""
        ...

    async def list(self, scope: str, state: CardState, *, limit: int = 100) -> tuple[Card, ...]:
        """Oldest first."""
        ...

    async def used_combinations(self, scope: str, *, with_dropped: bool) -> set[tuple[str, ...]]:
        """Sorted note ids of every card of the scope: buffered, kept, barren, and dropped if asked for."""
        ...

    async def set_state(
        self, card_id: str, state: CardState, note_id: str | None = None, *, was: CardState | None = None
    ) -> Card:
        """With `was` only a card that is in that state; else it stays. Returns it as it is then. Raises `CardNotFound`."""
        ...

    async def counts(self, scope: str) -> dict[CardState, int]:
        """Cards per state."""
        ...

    async def forget_notes(self, note_ids: Sequence[str]) -> None:
        """Buffered cards of deleted notes go with them."""
        ...
