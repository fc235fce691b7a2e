"""Files that become notes."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from domain.entities.note import ImportProgress, ImportReport


class Importer(Protocol):
    """Reads Markdown files below a folder; never changes one."""

    async def run(
        self, folder: Path, progress: Callable[[ImportProgress], None], *, deleted_too: bool = False
    ) -> ImportReport:
        """Brings the notes up to date with the files. Raises `InvalidRequest` if the folder cannot be read.

        A file whose note was deleted is left out until it changes, unless `deleted_too`.

        Being cancelled keeps what has been imported so far; the last step has told it.
        """
        ...

    async def came_from(self, folder: Path) -> dict[str, str]:
        """Id to content hash, as it was imported, of every note whose file lies or lay below a folder. Raises
        `InvalidRequest` if that is no path."""
        ...

    def watch(self, folder: Path) -> AsyncIterator[ImportReport]:
        """A report for every burst of changes, until it is closed. Raises `InvalidRequest` like `run`."""
        ...
