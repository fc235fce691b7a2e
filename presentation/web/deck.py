"""Nataraj: a deck to flick through. Gestures and keys are in static/deck.js."""

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from domain.entities.llm import LlmTaskKind
from domain.entities.nataraj import WHOLE_LIBRARY, Card, Deck, DeckWork
from domain.errors import NotFound, UniunError
from presentation.web.deck_words import fill_words
from presentation.web.notices import sentence, tell, tell_error
from presentation.web.parts import button, dialog, link, link_button
from presentation.web.rows import Rows
from presentation.web.shell import empty, heading, plain
from presentation.web.site import Site

_LOOK_S = 0.7
_UNDO = 20
_SHOWN = 3
"""Cards of the stack that are drawn."""
_KEYS = (
    ("→", "keep the card; it becomes a note"),
    ("←", "drop the card; it comes back when all others have been seen"),
    ("u", "undo: the last card comes back, and the note that it became goes"),
    ("o", "see the notes that it joins"),
    ("?", "this help"),
)


async def page_deck(site: Site, manas: str = WHOLE_LIBRARY) -> None:
    """`/deck`; `manas` is the id of a Manas, or `all`."""
    manases = await site.faces.manases.list()
    scopes = {WHOLE_LIBRARY: "All notes"} | {each.id: each.name for each in manases}
    scope = manas if manas in scopes else WHOLE_LIBRARY
    with heading("Deck"):
        if len(scopes) > 1:
            ui.select(
                scopes, value=scope, on_change=lambda event: ui.navigate.to(f"/deck?manas={event.value}")
            ).props('outlined dense aria-label="Notes that the cards are drawn from"').classes("u-deck-scope")
        button("Keys", icon="keyboard", on_click=lambda: table.help()).props(
            "flat aria-haspopup=dialog"
        ).classes("u-for-keys")
    site.enter_surface(LlmTaskKind.NATARAJ, scope)
    site.faces.nataraj.looked_at(scope)
    table = DeckTable(site, scope)
    await table.look()
    ui.on("uniun_deck", table.on_deed)
    site.changes.on("cards", table.look)
    ui.timer(_LOOK_S, table.look)


@dataclass(frozen=True)
class Done:
    """A card that was kept, with id and title of the note that it became, or dropped."""

    card_id: str
    note: tuple[str, str] | None


class DeckTable:
    """The cards of one scope, on one page."""

    def __init__(self, site: Site, scope: str) -> None:
        self._site = site
        self._nataraj = site.faces.nataraj
        self._client = ui.context.client
        self._looking = asyncio.Lock()
        self._scope = scope
        self._deck: Deck | None = None
        self._work = DeckWork()
        self._drawn: object = None
        self._done: deque[Done] = deque(maxlen=_UNDO)
        """What can be undone, the last deed at the end."""
        self._enough_notes = True
        with ui.element("section").classes("u-deck").props('aria-label="Cards"'):
            self._pile = ui.element("div").classes("u-deck-stack")
            self._cards = Rows(self._pile)
            with ui.element("div").classes("u-deck-deeds") as self._deeds:
                _deed("drop", "Drop", "close", "ArrowLeft")
                button("Notes", icon="description", on_click=self._show_notes).props(
                    "flat aria-keyshortcuts=o"
                )
                _deed("keep", "Keep", "check", "ArrowRight")
            self._none = ui.element("div")
        with ui.element("p").classes("u-deck-state u-muted u-number"):
            self._last = ui.element("span")
            """What was done last, and the way back."""
            self._words = plain("")
        self._said_last: Done | None = None
        self._said = ui.element("div").classes("u-hidden").props("role=status")

    async def look(self) -> None:
        """Draws what has changed since it was drawn last. One look at a time: an older one must not end after a newer."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        deck = await self._nataraj.deck(self._scope)
        self._work = await self._nataraj.work(self._scope)
        if not deck.cards:
            self._enough_notes = await self._notes_in_scope() >= 2
        self._deck = deck
        shown = tuple(card.id for card in deck.cards[:_SHOWN])
        filling = self._filling()
        waits = (self._work.writing > 0, self._work.exhausted, self._work.hindrance, filling)
        drawn = shown or (self._enough_notes, *waits)
        if drawn != self._drawn:
            self._drawn = drawn
            await self._draw(deck)
        self._say_state(deck)

    async def on_deed(self, event: GenericEventArguments) -> None:
        """What the user did with a card, as the browser tells it."""
        told: dict[str, Any] = event.args if isinstance(event.args, dict) else {}
        deed, card_id = told.get("deed"), told.get("card")
        if deed == "help":
            self.help()
        elif deed == "notes":
            await self._show_notes()
        elif deed == "undo":
            await self._undo()
        elif deed in ("keep", "drop") and isinstance(card_id, str):
            await self._settle(str(deed), card_id)

    async def _settle(self, deed: str, card_id: str) -> None:
        try:
            if deed == "keep":
                note = await self._nataraj.keep(card_id, self._scope)
                self._done.append(Done(card_id, (note.id, note.title)))
                self._site.changes.tell("notes")
            else:
                await self._nataraj.drop(card_id, self._scope)
                self._done.append(Done(card_id, None))
        except NotFound:
            pass  # another page was faster
        except UniunError as error:
            self._drawn = None
            self._cards.show(())  # the browser has hidden the card
            with self._client:
                tell_error(error)
        self._site.changes.tell("cards")
        await self.look()
        left = len(self._deck.cards) if self._deck is not None else 0
        self._announce(f"{'Kept as a note' if deed == 'keep' else 'Dropped'}. {left} left.")

    async def _undo(self) -> None:
        if not self._done:
            return
        done = self._done.pop()
        said = "It is back."
        try:
            await self._nataraj.restore(done.card_id)
        except NotFound:
            said = "It cannot come back: its notes have another card by now."
        except UniunError as error:
            said = sentence(error)
        if done.note is not None:
            self._site.changes.tell("notes")
        self._site.changes.tell("cards")
        await self.look()
        self._announce(said)
        with self._client:
            tell(said)

    def help(self) -> None:
        """The keys."""
        with self._client, dialog("Keys") as shown, ui.card():
            with ui.element("h2"):
                plain("Keys")
            with ui.element("dl").classes("u-keys"):
                for key, meaning in _KEYS:
                    with ui.element("dt"), ui.element("kbd"):
                        plain(key)
                    with ui.element("dd"):
                        plain(meaning)
            with ui.element("p").classes("u-muted u-small"):
                plain("Or pull a card to the right to keep it, to the left to drop it.")
            button("Close", on_click=shown.close).props("flat autofocus")

    async def _show_notes(self) -> None:
        cards = self._deck.cards if self._deck is not None else ()
        if not cards:
            return
        sources = await self._sources(cards[0])
        with self._client, dialog("Notes that this card joins") as shown, ui.card().classes("u-deck-notes"):
            with ui.element("h2"):
                plain("Notes that this card joins")
            for note_id, title, text in sources:
                with ui.element("article"):
                    with ui.element("h3"):
                        link(title, f"/notes/{note_id}")
                    with ui.element("p").classes("u-muted u-deck-excerpt"):
                        plain(text)
            button("Close", on_click=shown.close).props("flat autofocus")

    async def _sources(self, card: Card) -> list[tuple[str, str, str]]:
        found = []
        for note_id in card.note_ids:
            try:
                note = (await self._site.faces.notes.show(note_id)).note
            except NotFound:
                continue
            found.append((note.id, note.title or "Untitled", " ".join(note.text.split())[:400]))
        return found

    async def _notes_in_scope(self) -> int:
        scope = None if self._scope == WHOLE_LIBRARY else self._scope
        return len(await self._site.faces.notes.list(manas=scope, limit=2))

    # -- drawing

    async def _draw(self, deck: Deck) -> None:
        titles = [await self._nataraj.titles(card) for card in deck.cards[:_SHOWN]]
        for part in (self._pile, self._deeds):
            part.set_visibility(bool(deck.cards))
        self._none.set_visibility(not deck.cards)
        if deck.cards:
            shown = reversed(list(enumerate(zip(deck.cards, titles, strict=False))))
            self._cards.show(
                ((card.id, depth), partial(self._draw_card, card, titles, depth))
                for depth, (card, titles) in shown
            )
            return
        self._cards.show(())
        self._none.clear()
        with self._none:
            self._draw_empty()

    def _draw_card(self, card: Card, titles: tuple[str, ...], depth: int) -> Element:
        with ui.element("article").classes(f"u-deck-card u-depth-{depth}") as element:
            if depth:
                element.props("aria-hidden=true inert")
            else:
                element.props["data-card"] = card.id
            with ui.element("p").classes("u-deck-text"):
                plain(card.text)
            with ui.element("footer").classes("u-deck-sources"):
                for note_id, title in zip(card.note_ids, titles, strict=False):
                    link(title or "Untitled", f"/notes/{note_id}").classes("u-chip")
            if not depth:
                for side, word in (("keep", "Keep"), ("drop", "Drop")):
                    with ui.element("span").classes(f"u-deck-mark u-mark-{side}").props("aria-hidden=true"):
                        plain(word)
        return element

    def _draw_empty(self) -> None:
        if not self._enough_notes:
            with empty(
                "style",
                "No cards yet",
                "A card joins two or three of your notes into one new thought. Write or import some notes first.",
            ):
                link_button("To the notes", "/notes")
        elif self._work.writing or self._filling():
            with empty(
                "style",
                "The first cards are being written",
                "They appear here one by one, whenever the model has a moment.",
            ):
                ui.linear_progress(show_value=False).props(
                    'indeterminate rounded aria-label="Writing cards"'
                ).classes("u-deck-wait")
        elif self._work.hindrance is not None:
            with empty("error_outline", "No card could be written", self._work.hindrance):
                button("Try again", on_click=self._fill)
                link_button("Models", "/models")
        elif self._work.exhausted:
            with empty(
                "done_all",
                "You have seen every combination",
                "These notes have no pair or triple left that has no card. New notes bring new cards, or choose another set of notes.",
            ):
                link_button("To the notes", "/notes")
        else:
            with empty(
                "style",
                "No cards at the moment",
                "The model found little that these notes share, or has not come to it yet.",
            ):
                button("Write some now", on_click=self._fill)

    def _fill(self) -> None:
        scope, nataraj = self._scope, self._nataraj
        errand = self._site.errands.begin(f"deck/{scope}", lambda tell: nataraj.fill(scope, 2, tell))
        assert errand.task is not None

        def done(_: object) -> None:
            if errand.error is not None:
                self._client.safe_invoke(lambda: tell_error(errand.error or RuntimeError()))

        errand.task.add_done_callback(done)

    def _filling(self) -> bool:
        errand = self._site.errands.get(f"deck/{self._scope}")
        return errand is not None and errand.running

    def _say_state(self, deck: Deck) -> None:
        snapshot = self._site.faces.scheduler.snapshot()
        words = fill_words(len(deck.cards), self._work, self._scope, snapshot)
        self._words.text = words if deck.cards or self._work.writing else ""
        done = self._done[-1] if self._done else None
        if done == self._said_last:
            return
        self._said_last = done
        self._last.clear()
        with self._last:
            if done is None:
                return
            if done.note is None:
                plain("Dropped. ")
            else:
                plain("Kept: ")
                link(done.note[1] or "Untitled", f"/notes/{done.note[0]}")
            undo = button("Undo", icon="undo").props('flat dense aria-keyshortcuts="u Control+Z"')
            undo.props["data-deed"] = "undo"

    def _announce(self, text: str) -> None:
        self._said.clear()
        with self._said:
            plain(text)


def _deed(deed: str, text: str, icon: str, key: str) -> None:
    made = button(text, icon=icon).props(f"outline aria-keyshortcuts={key}")
    made.props["data-deed"] = deed
    made.classes(f"u-deed-{deed}")
