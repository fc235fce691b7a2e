"""Everything, outside of the database."""

from collections.abc import Callable
from pathlib import Path

from domain.entities.archive import ExportReport
from domain.usecases.export import BackUpUseCase, ExportUseCase


class ArchiveController:
    """Exports and backups."""

    def __init__(self, export: ExportUseCase, back_up: BackUpUseCase) -> None:
        self._export = export
        self._back_up = back_up

    async def export(
        self, folder: Path, *, force: bool, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ExportReport:
        """Markdown and JSON into a folder."""
        return await self._export(folder, force=force, progress=progress)

    async def back_up(self, target: Path) -> int:
        """Bytes of the copy."""
        return await self._back_up(target)

    async def back_up_now(self) -> tuple[Path, int]:
        """Where the copy is, and its bytes."""
        return await self._back_up.now()
