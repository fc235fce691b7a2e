"""An export as a folder: Markdown files, and one JSON file that holds everything."""

import asyncio
import json
import os
import unicodedata
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO

from data.clock import Clock
from data.models.files import DISK_FULL
from domain.entities.entity import Entity
from domain.errors import InvalidRequest, UniunError
from domain.repositories.archive import ArchiveWriter

JSON_NAME = "uniun.json"
FORMAT_VERSION = 1
DOCUMENTS = ("notes", "conversations")
_NAME_BYTES = 120
_FORBIDDEN = '<>:"/\\|?*'
"""On one system or another; an export may be carried to any of them."""
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


class FolderArchives:
    """Implements `Archives`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @asynccontextmanager
    async def create(self, folder: Path, *, force: bool) -> AsyncGenerator[ArchiveWriter, None]:
        with _told(folder):
            folder = await asyncio.to_thread(_prepare, folder, force)
            partial = folder / f".{JSON_NAME}.partial"
            with await asyncio.to_thread(partial.open, "w", encoding="utf-8") as file:
                writer = _FolderWriter(folder, file, self._clock.now().isoformat(timespec="seconds"))
                yield writer
                await asyncio.to_thread(writer.finish)
            # Its name appears last: an export with this file in it is a whole one.
            await asyncio.to_thread(partial.replace, folder / JSON_NAME)


class _FolderWriter:
    """Implements `ArchiveWriter`."""

    def __init__(self, folder: Path, file: IO[str], at: str) -> None:
        self._folder = folder
        self._json = file
        self._json.write(f'{{"format": "uniun-export", "version": {FORMAT_VERSION}, "exported_at": "{at}"')
        self._section: str | None = None
        self._first = True
        self._names: dict[str, set[str]] = {}

    async def put_documents(self, folder: str, documents: Sequence[tuple[str, str]]) -> list[str]:
        return await asyncio.to_thread(self._write_documents, folder, documents)

    async def put(self, section: str, entities: Sequence[Entity]) -> None:
        await asyncio.to_thread(self._write_entities, section, entities)

    async def count_others(self) -> int:
        return await asyncio.to_thread(self._count_others)

    def finish(self) -> None:
        """The end of the JSON, forced to disk."""
        self._json.write("]}\n" if self._section is not None else "}\n")
        self._json.flush()
        os.fsync(self._json.fileno())

    def _write_documents(self, folder: str, documents: Sequence[tuple[str, str]]) -> list[str]:
        place = self._folder / folder
        place.mkdir(exist_ok=True)
        taken = self._names.setdefault(folder, set())
        names = [unused_name(title, taken) for title, _ in documents]
        for name, (_, markdown) in zip(names, documents, strict=True):
            partial = place / ".partial"
            partial.write_text(markdown, encoding="utf-8", newline="\n")
            partial.replace(place / name)  # a link of that name is replaced, not followed
        return names

    def _count_others(self) -> int:
        return sum(
            _folded(path.stem) not in self._names.get(folder, ())
            for folder in DOCUMENTS
            for path in (self._folder / folder).glob("*.md")
        )

    def _write_entities(self, section: str, entities: Sequence[Entity]) -> None:
        if section != self._section:
            self._json.write(f'{"]" if self._section is not None else ""},\n"{section}": [')
            self._section, self._first = section, True
        for entity in entities:
            self._json.write(
                ("\n" if self._first else ",\n")
                + json.dumps(entity.model_dump(mode="json"), ensure_ascii=False)
            )
            self._first = False


def unused_name(title: str, taken: set[str]) -> str:
    """A file name that no title can make leave its folder, hide or clash; `taken` grows by it, folded."""
    text = unicodedata.normalize("NFC", title)
    text = "".join("-" if char in _FORBIDDEN else char for char in text if char.isprintable())
    text = text.encode()[:_NAME_BYTES].decode(errors="ignore").strip(" .") or "untitled"
    if text.split(".")[0].strip().lower() in _RESERVED:
        text = f"_{text}"
    name, number = text, 1
    while _folded(name) in taken:
        number += 1
        name = f"{text} {number}"
    taken.add(_folded(name))
    return f"{name}.md"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKD", name).casefold()


def _prepare(folder: Path, force: bool) -> Path:
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder} is no folder. Name one that is empty or does not exist.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in DOCUMENTS:
        if (folder / name).is_symlink():
            raise InvalidRequest(f"{folder / name} is a link. Export into another folder.")
    if not force and any(folder.iterdir()):
        raise InvalidRequest(
            f"The folder {folder} is not empty. Name another one, or add --force to write into it."
        )
    return folder


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "Free some disk space" if error.errno in DISK_FULL else "Name another folder"
        raise UniunError(
            f"The export into {folder} failed: {error.strerror}. {remedy} and try again."
        ) from None
