"""Everything, outside of the database."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from domain.entities.entity import Entity


class ArchiveWriter(Protocol):
    """An archive that is being written. It counts as written only when its context is left without an error."""

    async def put_documents(self, folder: str, documents: Sequence[tuple[str, str]]) -> list[str]:
        """(title, Markdown) of files below a folder; whatever a title says, its file is in there, under a name of its own.

        Returns these names.
        """
        ...

    async def put(self, section: str, entities: Sequence[Entity]) -> None:
        """More of a section; every section is put in one go or in several, one after another."""
        ...

    async def count_others(self) -> int:
        """Markdown files beside those that were put here, which some earlier archive left."""
        ...


class Archives(Protocol):
    """Makes them."""

    def create(self, folder: Path, *, force: bool) -> AbstractAsyncContextManager[ArchiveWriter]:
        """Raises `InvalidRequest` if the folder holds something and is not to be forced, `UniunError` if the disk is full."""
        ...


class Restores(Protocol):
    """Puts a backup in the database's place."""

    async def check(self, source: Path) -> None:
        """Raises `InvalidRequest` if `restore` would at this moment. Nothing is changed."""
        ...

    async def restore(self, source: Path) -> Path | None:
        """Where what was there is kept; none if there was nothing.

        Whatever ends it, even a kill, the database is the old one or the new one. Raises `InvalidRequest` while UNIUN is
        open, for a file that is no backup, that is damaged or written by a newer version, and if the database is no file;
        `DatabaseError`.
        """
        ...


class Backups(Protocol):
    """Copies of the database, made while it is used."""

    def new_target(self) -> Path:
        """A file that does not exist yet, named by the moment, in the folder for backups, which is made.

        Raises `DatabaseError` if that cannot be made.
        """
        ...

    @property
    def folder(self) -> Path:
        """For those that are given no name."""
        ...

    async def write(self, target: Path) -> int:
        """Bytes written, after the copy was opened and checked.

        Raises `InvalidRequest` if the target exists or the database is no file, `DatabaseError`.
        """
        ...
