"""The deck of idea cards."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from domain.entities.entity import Entity

CardState = Literal["buffered", "kept", "dropped", "barren"]

MAX_CARD_WORDS = 60
WHOLE_LIBRARY = "all"
"""The scope that holds every note."""


class Card(Entity):
    """A new thought that joins two or three notes; `barren` when the model found none."""

    id: str
    scope: str
    """`all`, or the id of a Manas."""
    note_ids: tuple[str, ...] = Field(min_length=2, max_length=3)
    """Sorted: the combination is the card's identity within its scope."""
    text: str
    state: CardState
    note_id: str | None = None
    """The note that a kept card became."""
    created_at: datetime


class DeckFill(Entity):
    """What filling a deck brought."""

    cards: tuple[Card, ...] = ()
    """New ones, then dropped ones that came back."""
    barren: int = 0
    """Combinations of which the model said that they share nothing."""
    resurfaced: int = 0
    exhausted: bool = False
    """No combination of notes is left: the scope has too few notes, or every one has a card."""


class Deck(Entity):
    """A deck as it lies on the table."""

    scope: str
    cards: tuple[Card, ...]
    """Buffered, the next one first."""
    counts: dict[CardState, int]


class DeckWork(Entity):
    """What is done, without being asked, so that a deck does not run out."""

    writing: int = 0
    """Cards that are still to be written in the fill that is going on; 0 when none is."""
    exhausted: bool = False
    """The last fill found no combination of notes left."""
    hindrance: str | None = None
    """Why the last fill failed; none when it did not."""
