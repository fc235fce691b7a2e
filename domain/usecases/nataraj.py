"""Nataraj: a deck of cards, each of which joins two or three notes into one new thought."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from domain.entities.llm import GenerationEvent, LlmTaskKind, Sampling
from domain.entities.nataraj import WHOLE_LIBRARY, Card, Deck, DeckFill
from domain.entities.note import Note, NoteDraft
from domain.errors import InvalidRequest
from domain.plain_text import said_text
from domain.prompts import nataraj as prompt
from domain.prompts.titles import title_of
from domain.repositories.cards import CardRepository
from domain.repositories.identity import Identities
from domain.repositories.model_store import ModelStore
from domain.repositories.note_changes import NoteChanges
from domain.repositories.notes import NoteRepository
from domain.usecases.combinations import Combination, CombinationSampler
from domain.usecases.llm import UNKNOWN_CONTEXT_TOKENS, GenerateOneShotUseCase
from domain.usecases.notes import DeleteNoteUseCase
from domain.usecases.text_budget import cut_middle
from domain.usecases.thinking import answer_only

MAX_FILL = 50
TRIES_PER_CARD = 4
"""Jobs spent on a card at most, if the model finds nothing that the notes share, or only copies them."""
CARD_TOKENS = 200
NOTES_SHARE = 0.6
"""Of the context, for all notes of one card together."""
MAX_NOTES_TOKENS = 3_000
"""More does not make a better thought, only a longer wait."""
WARMTH = Sampling(temperature=0.5, top_p=0.95)


class NatarajGenerator:
    """Fills decks. One for the whole process: calls at the same time share what they have drawn."""

    def __init__(
        self,
        cards: CardRepository,
        notes: NoteRepository,
        generate: GenerateOneShotUseCase,
        models: ModelStore,
        identities: Identities,
    ) -> None:
        self._cards = cards
        self._notes = notes
        self._generate = generate
        self._models = models
        self._identities = identities
        self._samplers: dict[str, CombinationSampler] = {}
        self._filling: Counter[str] = Counter()

    async def fill_buffer(
        self, scope: str, count: int, on_event: Callable[[GenerationEvent], None] = lambda event: None
    ) -> DeckFill:
        """Writes up to `count` cards, one job each, and stores each as soon as it is written.

        When no combination is left, dropped cards come back instead, oldest first. Raises what ended a job; cards
        written before that stay.
        """
        if not 1 <= count <= MAX_FILL:
            raise InvalidRequest(f"A deck is filled with 1 to {MAX_FILL} cards at a time, not {count}.")
        cards: list[Card] = []
        barren = 0
        async with self._sampler(scope) as sampler:
            for _ in range(count * TRIES_PER_CARD):
                combination = sampler.draw() if len(cards) < count else None
                if combination is None:
                    break
                card = await self._card(scope, combination, sampler, on_event)
                if card is not None and card.state == "buffered":
                    cards.append(card)
                elif card is not None:
                    barren += 1
            exhausted = len(cards) < count and sampler.exhausted
        back = await self._resurface(scope, count - len(cards)) if exhausted else []
        return DeckFill(
            cards=(*cards, *back), barren=barren, resurfaced=len(back), exhausted=exhausted and not back
        )

    async def _card(
        self,
        scope: str,
        combination: Combination,
        sampler: CombinationSampler,
        on_event: Callable[[GenerationEvent], None],
    ) -> Card | None:
        """The stored card; none when the notes were deleted, are empty, or have a card already."""
        notes = await self._notes.many(combination)
        if len(notes) < len(combination):
            sampler.forget(set(combination) - {note.id for note in notes})
            return None
        if not all(said_text(note.text).strip() for note in notes):
            return None
        text = await self._write(scope, notes, on_event)
        if len(await self._notes.many(combination)) < len(combination):
            return None
        card = Card(
            id=self._identities.new_id(),
            scope=scope,
            note_ids=combination,
            text=text,
            state="buffered" if text else "barren",
            created_at=self._identities.now(),
        )
        return card if await self._cards.put(card) else None

    async def _write(
        self, scope: str, notes: tuple[Note, ...], on_event: Callable[[GenerationEvent], None]
    ) -> str:
        model = self._models.get(self._models.default_name())
        context = model.context_tokens or UNKNOWN_CONTEXT_TOKENS
        budget = min(MAX_NOTES_TOKENS, int(context * NOTES_SHARE)) // len(notes)
        material = [(note.title, said_text(cut_middle(note.text, budget))) for note in notes]
        result = await self._generate(
            LlmTaskKind.NATARAJ,
            scope,
            prompt.messages(material),
            model=model.name,
            sampling=WARMTH,
            max_tokens=CARD_TOKENS,
            thinking=False,  # it would take all of them
            stop=prompt.MARKS,
            on_event=on_event,
        )
        return prompt.read_card(answer_only(result.text), result.finish_reason, material)

    async def _resurface(self, scope: str, count: int) -> list[Card]:
        back: list[Card] = []
        for card in await self._cards.list(scope, "dropped", limit=count):
            if len(await self._notes.many(card.note_ids)) == len(card.note_ids):
                back.append(await self._cards.set_state(card.id, "buffered", was="dropped"))
        return [card for card in back if card.state == "buffered"]

    @asynccontextmanager
    async def _sampler(self, scope: str) -> AsyncIterator[CombinationSampler]:
        """Shared by all calls that fill this scope now, so that none draws what another has drawn."""
        self._filling[scope] += 1
        try:
            if scope not in self._samplers:
                note_ids = await self._notes.note_ids(None if scope == WHOLE_LIBRARY else scope)
                used = await self._cards.used_combinations(scope, with_dropped=True)
                sampler = CombinationSampler(note_ids, used, self._identities.new_id())
                self._samplers.setdefault(scope, sampler)
            yield self._samplers[scope]
        finally:
            self._filling[scope] -= 1
            if not self._filling[scope]:
                del self._filling[scope]
                self._samplers.pop(scope, None)


class ShowDeckUseCase:
    """The cards that lie ready."""

    def __init__(self, cards: CardRepository, notes: NoteRepository) -> None:
        self._cards = cards
        self._notes = notes

    async def __call__(self, scope: str, *, limit: int = 100) -> Deck:
        """Cards whose notes were deleted meanwhile are taken out of the deck here."""
        buffered = await self._cards.list(scope, "buffered", limit=limit)
        wanted = sorted({note_id for card in buffered for note_id in card.note_ids})
        there = {note.id for note in await self._notes.many(wanted)}
        gone = [note_id for note_id in wanted if note_id not in there]
        if gone:
            await self._cards.forget_notes(gone)
        return Deck(
            scope=scope,
            cards=tuple(card for card in buffered if there.issuperset(card.note_ids)),
            counts=await self._cards.counts(scope),
        )

    async def titles(self, card: Card) -> tuple[str, ...]:
        """Of the card's notes, as far as they are still there."""
        return tuple(note.title for note in await self._notes.many(card.note_ids))


class KeepCardUseCase:
    """A card becomes a note."""

    def __init__(
        self,
        cards: CardRepository,
        notes: NoteRepository,
        compose: Callable[[NoteDraft], Note],
        changes: NoteChanges,
    ) -> None:
        self._cards = cards
        self._notes = notes
        self._compose = compose
        self._changes = changes

    async def __call__(self, card_id: str) -> Note:
        """The note, linked to the notes that it came from. Keeping a card twice gives the same note.

        Raises `CardNotFound`, and `InvalidRequest` for a card without text.
        """
        card = await self._cards.get(card_id)
        if card.note_id is not None:
            return await self._notes.get(card.note_id)
        if card.state == "barren":
            raise InvalidRequest(f"Card {card_id} is empty: the model found nothing that its notes share.")
        links = [f"[[{_linkable(note.title)}]]" for note in await self._notes.many(card.note_ids)]
        joined = f"\n\nFrom {' and '.join(links)}." if links else ""
        draft = NoteDraft(
            title=title_of(card.text), text=card.text + joined, source="nataraj", origin=card.id
        )
        # The card's id, so that a crash between the two writes below leaves no second note behind. It may have been
        # edited since.
        note = next(iter(await self._notes.many([card.id])), None)
        if note is None:
            note = self._compose(draft).model_copy(update={"id": card.id})
            await self._notes.save([note])
            self._changes.announce([note.id])
        await self._cards.set_state(card.id, "kept", note.id)
        return note


class DropCardUseCase:
    """A card that the user does not want; it comes back when every combination has been used."""

    def __init__(self, cards: CardRepository) -> None:
        self._cards = cards

    async def __call__(self, card_id: str) -> Card:
        """Raises `CardNotFound`, and `InvalidRequest` for a card that was kept."""
        card = await self._cards.get(card_id)
        if card.state != "kept":
            # It may be kept on another page at this moment.
            card = await self._cards.set_state(card_id, "dropped", was=card.state)
        if card.state == "kept":
            raise InvalidRequest(f"Card {card_id} was kept and is a note now; delete the note instead.")
        return card


class RestoreCardUseCase:
    """Takes back that a card was dropped or kept: it lies in the deck again, as the oldest one in front."""

    def __init__(self, cards: CardRepository, notes: NoteRepository, delete: DeleteNoteUseCase) -> None:
        self._cards = cards
        self._notes = notes
        self._delete = delete

    async def __call__(self, card_id: str) -> Card:
        """The note that a kept card became is deleted. A card that lies in the deck stays there.

        Raises `CardNotFound` if its notes have got another card meanwhile, `InvalidRequest` if its note was changed.
        """
        card = await self._cards.get(card_id)
        if card.state not in ("kept", "dropped"):
            return card
        for note in await self._notes.many([card.note_id] if card.note_id is not None else []):
            if note.changed_at != note.created_at:
                raise InvalidRequest(
                    f"The note “{note.title}” has been changed since, so it stays. Delete it on its own page if you "
                    "do not want it."
                )
            await self._delete(note.id)
        return await self._cards.set_state(card_id, "buffered", was=card.state)


def _linkable(title: str) -> str:
    """A title without what would end a wikilink."""
    return " ".join("".join(" " if character in "[]|#\n" else character for character in title).split())
