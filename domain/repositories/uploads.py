"""Files that come through a browser."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from domain.entities.note import ImportProblem


class UploadedFile(Protocol):
    """One file, as whatever received it offers it. Its name is whatever the sender says."""

    name: str

    def size(self) -> int:
        """In bytes."""
        ...

    async def save(self, path: Path) -> None:
        """Writes the bytes to a new file."""
        ...


@dataclass(frozen=True)
class UnpackedFiles:
    """Files to import, on the disk for a while."""

    folder: Path
    problems: tuple[ImportProblem, ...]
    """What was left out, and why."""
    whole: bool
    """Whether they are one archive: a file of its that was imported earlier and is not in it now, is gone."""
    names: Mapping[str, str]
    """What the sender called a single file, by its path below the folder."""


class Uploads(Protocol):
    """Unpacks archives within limits, and nothing outside its own folder."""

    def unpacked(self, files: Sequence[UploadedFile]) -> AbstractAsyncContextManager[UnpackedFiles]:
        """The same archive name gives the same folder, so that a second import knows the first; of a single file it takes
        the same name and the same bytes, for two files of one name may be two notes. Leaving removes it.

        Raises `InvalidRequest` if there is too much of it, or an archive is damaged.
        """
        ...
