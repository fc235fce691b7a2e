"""Folders of Markdown become notes."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from domain.entities.note import ImportProgress, ImportReport
from domain.repositories.importer import Importer


class ImportFolderUseCase:
    """Brings the notes up to date with a folder; files are only read."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer

    async def __call__(
        self, folder: Path, progress: Callable[[ImportProgress], None] = lambda step: None
    ) -> ImportReport:
        """Once. Raises `InvalidRequest`. Being cancelled keeps what was imported."""
        return await self._importer.run(folder, progress)

    def watch(self, folder: Path) -> AsyncIterator[ImportReport]:
        """Again after every burst of changes, until it is closed."""
        return self._importer.watch(folder)
