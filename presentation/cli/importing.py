"""`uniun notes import`."""

import asyncio
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from domain.entities.note import ImportCopy, ImportProblem, ImportProgress, ImportReport
from presentation.cli.openers import Library
from presentation.cli.progress import CountColumn
from presentation.cli.terminal import err, make_sure, printable, say, write
from presentation.counting import counted

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]
_PATH_CHARACTERS = 50
_ID_CHARACTERS = 12
_MOST_TOLD = 10


async def import_folder(open_library: OpenLibrary, folder: Path, *, watch: bool, deleted_too: bool) -> bool:
    """Whether anything could be imported. The report is on stdout, problems, one a line, on stderr."""
    async with open_library() as library:
        with counting_bar("importing") as step:
            added, taken = 0, 0

            def show(progress: ImportProgress) -> None:
                nonlocal added, taken
                added, taken = added + len(progress.added), progress.taken
                step(progress.done, progress.total, "behind an answer" if progress.rests else progress.path)

            try:
                report = await library.notes.import_folder(folder, show, deleted_too=deleted_too)
            except asyncio.CancelledError:
                _tell_stopped(folder, added, taken - added)
                raise
        _tell(report.problems)
        _tell_copies(report.copies)
        write(f"{_summary(report)}\n")
        if watch:
            await _follow(library, folder, set(report.problems), set(report.gone_files))
            return True
    imported = report.created + report.updated + report.unchanged + report.deleted
    if not imported and not report.problems:
        say(f"There is no Markdown file in {folder}.")
    return imported > 0


async def take_back(open_library: OpenLibrary, folder: Path, *, sure: bool) -> bool:
    """Whether there was anything. Asks on a terminal, and wants to be told elsewhere."""
    async with open_library() as library:
        added = await library.notes.came_from(folder)
        if not added:
            say(f"no note came from {folder}.")
            return False
        what = f"{counted(len(added), 'note')} that came from {folder}, except what you have changed since"
        make_sure(f"delete {what}", sure=sure)
        with counting_bar("deleting") as step:
            undone = await library.notes.undo_import(added, lambda done, total: step(done, total, ""))
    kept = counted(undone.kept, "was changed since, and stays", "were changed since, and stay")
    write(f"{counted(undone.deleted, 'note is', 'notes are')} deleted.{f' {kept}.' if undone.kept else ''}\n")
    return True


async def _follow(library: Library, folder: Path, told: set[ImportProblem], gone: set[str]) -> None:
    """Until Ctrl-C, which is how this is meant to end."""
    say(f"following {folder}; Ctrl-C ends it.")
    try:
        async for report in library.notes.watch_folder(folder):
            _tell([problem for problem in report.problems if problem not in told])
            told = set(report.problems)
            _tell_gone([path for path in report.gone_files if path not in gone])
            gone = set(report.gone_files)
            if report.created or report.updated:
                _tell_copies(report.copies)
                write(f"{_summary(report)}\n")
    except asyncio.CancelledError:
        return


def _tell(problems: "tuple[ImportProblem, ...] | list[ImportProblem]") -> None:
    for problem in problems:
        say(f"{problem.path}: {problem.reason}{'' if problem.imported else ' (not imported)'}")


def _tell_gone(paths: Sequence[str]) -> None:
    for path in paths[:_MOST_TOLD]:
        say(f"{path} is gone; its note stays.")
    if len(paths) > _MOST_TOLD:
        say(f"and {counted(len(paths) - _MOST_TOLD, 'more file')}, whose notes stay.")


def _tell_stopped(folder: Path, new: int, changed: int) -> None:
    say(f"{new:,} new, {changed:,} changed before it was stopped. Importing again goes on from there.")
    if new:
        say(f"to take back what came from the folder: uniun notes import {shlex.quote(str(folder))} --undo")


def _tell_copies(copies: Sequence[ImportCopy]) -> None:
    for copy in copies[:_MOST_TOLD]:
        say(f"{copy.path}: {copy.title} ({copy.note_id[:_ID_CHARACTERS]}) says the same.")
    if len(copies) > _MOST_TOLD:
        say(f"and {len(copies) - _MOST_TOLD:,} more like that.")


def _summary(report: ImportReport) -> str:
    parts = [f"{report.created:,} new", f"{report.updated:,} changed", f"{report.unchanged:,} as before"]
    if copies := len(report.copies):
        parts.append(
            f"{copies:,} of the new ones word for word like {'a note' if copies == 1 else 'notes'} that you have"
        )
    if report.gone:
        parts.append(counted(report.gone, "gone, whose note stays", "gone, whose notes stay"))
    if report.deleted:
        left_out = counted(report.deleted, "left out, whose note", "left out, whose notes")
        parts.append(
            f"{left_out} you deleted (take {'it' if report.deleted == 1 else 'them'} with --deleted)"
        )
    if report.problems:
        parts.append(counted(len(report.problems), "with a problem", "with problems"))
    if report.attachments:
        parts.append(f"{counted(report.attachments, 'attachment')} not taken (UNIUN keeps text only)")
    return ", ".join(parts)


@contextmanager
def counting_bar(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr, on a terminal only; what is yielded takes (done, total, name)."""
    console = err()
    with Progress(
        TextColumn(what, markup=False),
        BarColumn(),
        CountColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("looking what there is", total=None)

        def step(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=printable(name)[-_PATH_CHARACTERS:])

        yield step
