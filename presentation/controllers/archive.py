"""Everything, outside of the database."""

from collections.abc import Callable
from pathlib import Path

from domain.entities.archive import ExportReport
from domain.usecases.export import BackUpUseCase, ExportUseCase, RestoreUseCase


class ArchiveController:
    """Exports and backups."""

    def __init__(self, export: ExportUseCase, back_up: BackUpUseCase, restore: RestoreUseCase) -> None:
        self._export = export
        self._back_up = back_up
        self._restore = restore

    async def export(
        self, folder: Path, *, force: bool, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ExportReport:
        """Markdown and JSON into a folder."""
        return await self._export(folder, force=force, progress=progress)

    async def back_up(self, target: Path) -> int:
        """Bytes of the copy."""
        return await self._back_up(target)

    @property
    def backup_folder(self) -> Path:
        """Of the copies that are given no name."""
        return self._back_up.folder

    async def check_restore(self, source: Path) -> None:
        """Raises what `restore` would refuse with, before the user is asked."""
        await self._restore.check(source)

    async def restore(self, source: Path) -> Path | None:
        """Where what was there is kept; none if there was nothing."""
        return await self._restore(source)

    async def back_up_now(self) -> tuple[Path, int]:
        """Where the copy is, and its bytes."""
        return await self._back_up.now()
