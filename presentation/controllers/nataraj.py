"""The deck, for every face."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.entities.llm import GenerationEvent, LlmTaskKind
from domain.entities.nataraj import WHOLE_LIBRARY, Card, Deck, DeckFill, DeckWork
from domain.entities.note import Note
from domain.errors import CardNotFound, InvalidRequest
from domain.usecases.manases import ListManasesUseCase
from domain.usecases.nataraj import (
    DropCardUseCase,
    KeepCardUseCase,
    NatarajGenerator,
    RestoreCardUseCase,
    ShowDeckUseCase,
)
from domain.usecases.scheduler import SetForegroundKindUseCase


async def _no_refill(scope: str) -> DeckWork:
    return DeckWork()


@dataclass(frozen=True)
class NatarajController:
    """A scope is `all` or the id of a Manas. `looked_at` tells whoever refills decks which one is in use; `work` is what
    that one does for a deck."""

    generator: NatarajGenerator
    show_deck: ShowDeckUseCase
    keep_card: KeepCardUseCase
    drop_card: DropCardUseCase
    restore_card: RestoreCardUseCase
    manases: ListManasesUseCase
    set_foreground: SetForegroundKindUseCase
    looked_at: Callable[[str], None] = lambda scope: None
    work: Callable[[str], Awaitable[DeckWork]] = _no_refill

    async def scope(self, manas: str | None) -> str:
        """Of a Manas by name or id, or of the whole library. Raises `ManasNotFound`."""
        return (await self.manases.get(manas)).id if manas not in (None, WHOLE_LIBRARY) else WHOLE_LIBRARY

    @contextmanager
    def open(self, scope: str) -> Iterator[None]:
        """While entered, the user looks at this deck."""
        self.set_foreground(LlmTaskKind.NATARAJ, scope)
        self.looked_at(scope)
        try:
            yield
        finally:
            self.set_foreground(None)

    async def deck(self, scope: str) -> Deck:
        """What lies there now."""
        return await self.show_deck(scope)

    async def titles(self, card: Card) -> tuple[str, ...]:
        """Of the notes that the card joins."""
        return await self.show_deck.titles(card)

    async def fill(
        self, scope: str, count: int, on_event: Callable[[GenerationEvent], None] = lambda event: None
    ) -> DeckFill:
        """Writes new cards now."""
        return await self.generator.fill_buffer(scope, count, on_event)

    async def keep(self, card_id: str, scope: str = WHOLE_LIBRARY) -> Note:
        """The card becomes a note. Raises `CardNotFound`."""
        note = await self.keep_card(card_id)
        self.looked_at(scope)
        return note

    async def drop(self, card_id: str, scope: str = WHOLE_LIBRARY) -> Card:
        """The card goes, until all combinations have been used. Raises `CardNotFound`."""
        card = await self.drop_card(card_id)
        self.looked_at(scope)
        return card

    async def restore(self, card_id: str) -> Card:
        """Undoes `keep` and `drop`. Raises `CardNotFound`, and `InvalidRequest` if the note was changed since."""
        return await self.restore_card(card_id)

    async def find(self, scope: str, reference: str | None) -> Card:
        """The next card, or the one whose id begins so. Raises `CardNotFound`, `InvalidRequest`."""
        cards = (await self.show_deck(scope)).cards
        if reference is None:
            if not cards:
                raise CardNotFound("No card lies in this deck. Fill it: uniun nataraj fill")
            return cards[0]
        found = [card for card in cards if card.id.startswith(reference)]
        if not found:
            raise CardNotFound(f"There is no card {reference} in this deck. Show it: uniun nataraj")
        if len(found) > 1:
            raise InvalidRequest(f"{len(found)} cards begin with {reference}. Write more of the id.")
        return found[0]
