"""Folders of Markdown become notes."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from domain.entities.note import ImportCopy, ImportProblem, ImportProgress, ImportReport, UndoneImport
from domain.repositories.importer import Importer
from domain.repositories.notes import NoteRepository
from domain.repositories.uploads import UnpackedFiles, UploadedFile, Uploads
from domain.usecases.notes import DeleteNoteUseCase

Told = TypeVar("Told", ImportProblem, ImportCopy)


class ImportFolderUseCase:
    """Brings the notes up to date with a folder; files are only read."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer

    async def __call__(
        self,
        folder: Path,
        progress: Callable[[ImportProgress], None] = lambda step: None,
        *,
        deleted_too: bool = False,
    ) -> ImportReport:
        """Once; also files whose notes were deleted, if told so. Raises `InvalidRequest`.

        Being cancelled keeps what was imported.
        """
        return await self._importer.run(folder, progress, deleted_too=deleted_too)

    async def came_from(self, folder: Path) -> dict[str, str]:
        """What all imports of a folder have added, as `UndoImportUseCase` wants it. Raises `InvalidRequest`."""
        return await self._importer.came_from(folder)

    def watch(self, folder: Path) -> AsyncIterator[ImportReport]:
        """Again after every burst of changes, until it is closed."""
        return self._importer.watch(folder)


class ImportUploadUseCase:
    """Files that came through a browser become notes; the files themselves are not kept."""

    def __init__(self, uploads: Uploads, importer: Importer) -> None:
        self._uploads = uploads
        self._importer = importer

    async def __call__(
        self,
        files: Sequence[UploadedFile],
        progress: Callable[[ImportProgress], None] = lambda step: None,
    ) -> ImportReport:
        """An archive of the same name brings its notes up to date; a single file never writes over the note of another
        one of its name. Raises `InvalidRequest`.

        Being cancelled keeps what was imported.
        """
        async with self._uploads.unpacked(files) as unpacked:
            # Who uploads a file wants it, whatever became of its note before.
            report = await self._importer.run(unpacked.folder, progress, deleted_too=True)
            problems = [_as_sent(problem, unpacked) for problem in report.problems]
            return report.model_copy(
                update={
                    "problems": (*unpacked.problems, *problems),
                    "copies": tuple(_as_sent(copy, unpacked) for copy in report.copies),
                    # Single files say nothing about others.
                    "gone": report.gone if unpacked.whole else 0,
                    "gone_files": report.gone_files if unpacked.whole else (),
                }
            )


class UndoImportUseCase:
    """Deletes what an import has added, except what has been changed since. Another import takes the files again."""

    def __init__(self, notes: NoteRepository, delete: DeleteNoteUseCase) -> None:
        self._notes = notes
        self._delete = delete

    async def __call__(
        self,
        added: Mapping[str, str],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> UndoneImport:
        """`added` is that of the report, or of every step. Being cancelled keeps what is not deleted yet."""
        deleted = 0
        for at, (note_id, content_hash) in enumerate(added.items()):
            progress(at, len(added))
            for note in await self._notes.many([note_id]):
                if note.content_hash == content_hash:
                    await self._delete(note_id, again=True)
                    deleted += 1
        left = await self._notes.many(tuple(added))
        return UndoneImport(deleted=deleted, kept=len(left))


def _as_sent(told: Told, unpacked: UnpackedFiles) -> Told:
    """By the name that the sender knows."""
    path = told.path.removeprefix(f"{unpacked.folder}/")
    return told.model_copy(update={"path": unpacked.names.get(path, path)})
