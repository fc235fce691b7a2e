"""`uniun notes manas …`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from presentation.cli.openers import Library
from presentation.cli.terminal import make_sure, write
from presentation.counting import counted

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]


async def create(open_library: OpenLibrary, name: str) -> None:
    """Says what to do next."""
    async with open_library() as library:
        manas = await library.manases.create(name)
    write(f"{manas.name} is created. Put notes in with: uniun notes manas add\n")


async def list_manases(open_library: OpenLibrary) -> None:
    """One a line."""
    async with open_library() as library:
        manases = await library.manases.list()
    if not manases:
        write("There is no Manas yet. Make one with: uniun notes manas create NAME\n")
    for manas in manases:
        write(f"{manas.id[:12]}  {manas.note_count:6}  {manas.name}\n")


async def remove(open_library: OpenLibrary, reference: str, *, sure: bool) -> None:
    """The notes stay."""
    async with open_library() as library:
        known = await library.manases.get(reference)
        make_sure(f"delete the Manas {known.name}", sure=sure)
        manas = await library.manases.delete(reference)
    stay = f"; its {counted(manas.note_count, 'note stays', 'notes stay')}" if manas.note_count else ""
    write(f"{manas.name} is removed{stay}.\n")


async def change(
    open_library: OpenLibrary,
    reference: str,
    notes: Sequence[str],
    tag: str | None,
    query: str | None,
    *,
    add: bool,
) -> None:
    """Puts notes in or takes them out."""
    async with open_library() as library:
        deed = library.manases.add if add else library.manases.remove
        manas = await deed(reference, notes, tag=tag, query=query)
    write(f"{manas.name} has {counted(manas.note_count, 'note')}.\n")
