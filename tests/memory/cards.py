"""The deck in a dictionary."""

from collections import Counter
from collections.abc import Sequence

from domain.entities.nataraj import Card, CardState
from domain.errors import CardNotFound


class MemoryCards:
    """Implements `CardRepository`."""

    def __init__(self) -> None:
        self._cards: dict[str, Card] = {}

    async def put(self, card: Card) -> bool:
        for other in tuple(self._cards.values()):
            if (other.scope, other.note_ids) == (card.scope, card.note_ids):
                if other.state != "dropped":
                    return False
                del self._cards[other.id]
        self._cards[card.id] = card
        return True

    async def get(self, card_id: str) -> Card:
        if card_id not in self._cards:
            raise CardNotFound(f"There is no card {card_id}.")
        return self._cards[card_id]

    async def list(self, scope: str, state: CardState, *, limit: int = 100) -> tuple[Card, ...]:
        found = [card for card in self._cards.values() if (card.scope, card.state) == (scope, state)]
        return tuple(sorted(found, key=lambda card: (card.created_at, card.id))[:limit])

    async def used_combinations(self, scope: str, *, with_dropped: bool) -> set[tuple[str, ...]]:
        return {
            card.note_ids
            for card in self._cards.values()
            if card.scope == scope and (with_dropped or card.state != "dropped")
        }

    async def set_state(
        self, card_id: str, state: CardState, note_id: str | None = None, *, was: CardState | None = None
    ) -> Card:
        card = await self.get(card_id)
        if was in (None, card.state):
            self._cards[card_id] = card.model_copy(update={"state": state, "note_id": note_id})
        return self._cards[card_id]

    async def counts(self, scope: str) -> dict[CardState, int]:
        return Counter(card.state for card in self._cards.values() if card.scope == scope)

    async def forget_notes(self, note_ids: Sequence[str]) -> None:
        gone = set(note_ids)
        for card in tuple(self._cards.values()):
            if card.state == "buffered" and gone.intersection(card.note_ids):
                del self._cards[card.id]
