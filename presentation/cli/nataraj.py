"""`uniun nataraj …`: what the commands do."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from domain.entities.nataraj import Card
from presentation.cli.openers import Controllers, Library
from presentation.cli.progress import WaitingLine, ensure
from presentation.cli.terminal import say, write
from presentation.cli.wrap import write_beside
from presentation.counting import counted

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]
OpenControllers = Callable[[], AbstractAsyncContextManager[Controllers]]
_ID_CHARACTERS = 8
_COUNTED = {"buffered": "ready", "barren": "without a thought"}
"""Combinations of notes that gave none are no cards, but counted with them."""


async def show(open_library: OpenLibrary, manas: str | None) -> None:
    """Every card that lies ready, and how many there were."""
    async with open_library() as library:
        nataraj = library.nataraj()
        deck = await nataraj.deck(await nataraj.scope(manas))
    for card in deck.cards:
        _show(card)
    counts = ", ".join(
        f"{count} {_COUNTED.get(state, state)}" for state, count in sorted(deck.counts.items()) if count
    )
    if not deck.cards:
        say("no card lies in this deck. Fill it: uniun nataraj fill")
    if counts:
        write(f"{counts}\n")


async def next_card(open_library: OpenLibrary, manas: str | None) -> None:
    """The card and the titles of its notes."""
    async with open_library() as library:
        nataraj = library.nataraj()
        card = await nataraj.find(await nataraj.scope(manas), None)
        titles = await nataraj.titles(card)
    _show(card)
    for title in titles:
        write_beside("  from ", title)


async def keep(open_library: OpenLibrary, reference: str | None, manas: str | None) -> None:
    """Says which note it became."""
    async with open_library() as library:
        nataraj = library.nataraj()
        scope = await nataraj.scope(manas)
        note = await nataraj.keep((await nataraj.find(scope, reference)).id, scope)
    write_beside(f"Kept as the note {note.id[:12]}: ", note.title)


async def drop(open_library: OpenLibrary, reference: str | None, manas: str | None) -> None:
    """Says which card it was."""
    async with open_library() as library:
        nataraj = library.nataraj()
        scope = await nataraj.scope(manas)
        card = await nataraj.drop((await nataraj.find(scope, reference)).id, scope)
    write_beside("Dropped: ", card.text)


async def fill(open_controllers: OpenControllers, count: int, manas: str | None) -> None:
    """Prints the new cards."""
    async with open_controllers() as controllers:
        nataraj = controllers.nataraj
        scope = await nataraj.scope(manas)
        await ensure(controllers.models, None)
        with nataraj.open(scope), WaitingLine("writing cards") as waiting:
            filled = await nataraj.fill(scope, count, waiting.tell)
    for card in filled.cards:
        _show(card)
    if filled.barren:
        say(f"{counted(filled.barren, 'combination')} of notes gave no new thought.")
    if filled.resurfaced:
        say(f"every combination has been used; {counted(filled.resurfaced, 'dropped card')} came back.")
    if filled.exhausted:
        say("no combination of notes is left. Write more notes.")
    elif not filled.cards:
        say("no card came of it. Try again, or take a larger model.")


def _show(card: Card) -> None:
    write_beside(f"{card.id[:_ID_CHARACTERS]}  ", card.text)
