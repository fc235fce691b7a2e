"""`uniun export`, `uniun backup` and `uniun restore`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from presentation.cli.importing import counting_bar
from presentation.cli.openers import Library
from presentation.cli.terminal import make_sure, size, write
from presentation.counting import counted

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]


async def export(open_library: OpenLibrary, folder: Path, *, force: bool) -> None:
    """With a bar on a terminal."""
    async with open_library() as library:
        with counting_bar("exporting") as step:
            report = await library.archive.export(
                folder, force=force, progress=lambda done, total: step(done, total, "")
            )
    counts = {
        "note": report.notes,
        "conversation": report.conversations,
        "card": report.cards,
        "Gana": report.ganas,
    }
    told = ", ".join(f"{count} {name}" + "s" * (count != 1) for name, count in counts.items())
    write(f"Exported into {folder}: {told}.\n")
    if report.left:
        write(
            f"{counted(report.left, 'Markdown file')} there are of an earlier export, of notes or conversations that are gone. "
            "For a folder without them, export into a new one.\n"
        )


async def back_up(open_library: OpenLibrary, file: Path) -> None:
    """Says how large it is."""
    async with open_library() as library:
        count = await library.archive.back_up(file)
    write(f"{file} is written ({size(count)}) and checked.\n")


async def restore(open_library: OpenLibrary, file: Path, *, sure: bool) -> None:
    """Says where what was there is kept. What would be refused is, before anybody is asked."""
    what = "all notes, conversations and Ganas, which are kept as one more backup"
    async with open_library() as library:
        await library.archive.check_restore(file)
        make_sure(f"put {file} in the place of {what}", sure=sure)
        kept = await library.archive.restore(file)
    write(f"{file} is restored.\n")
    if kept is not None:
        write(f"What was there before is kept: {kept}\n")
