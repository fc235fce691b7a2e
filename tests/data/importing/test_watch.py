"""Real files under a real watch."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from domain.entities.note import ImportReport
from tests.data.importing.test_folder import Importing

LIMIT_S = 240


async def until(reports: AsyncIterator[ImportReport], importing: Importing, texts: dict[str, str]) -> None:
    """Reads reports until the notes are these; there may be any number of bursts on the way."""
    async with asyncio.timeout(LIMIT_S):
        async for _ in reports:
            now = {Path(note.origin or "").name: note.text for note in importing.notes.notes.values()}
            if now == texts:
                return


def test_a_folder_is_followed(tmp_path: Path) -> None:
    importing = Importing()
    path = tmp_path / "a.md"

    async def follow() -> None:
        path.write_text("written before")
        reports = importing.importer.watch(tmp_path)
        await until(reports, importing, {"a.md": "written before"})
        note_id = next(iter(importing.notes.notes))

        path.write_text("changed")
        await until(reports, importing, {"a.md": "changed"})

        # As vim, gedit and others save: a new file takes the place of the old one, by way of a backup.
        for number in range(3):
            (tmp_path / "a.md.tmp").write_text(f"saved {number}")
            path.rename(tmp_path / "a.md~")
            (tmp_path / "a.md.tmp").rename(path)
            (tmp_path / "a.md~").unlink()
            await until(reports, importing, {"a.md": f"saved {number}"})
        assert list(importing.notes.notes) == [note_id]

        (tmp_path / "new folder").mkdir()
        (tmp_path / "new folder" / "b.md").write_text("below")
        (tmp_path / ".obsidian").mkdir()
        (tmp_path / ".obsidian" / "c.md").write_text("hidden")
        await until(reports, importing, {"a.md": "saved 2", "b.md": "below"})

        path.rename(tmp_path / "renamed.md")
        await until(reports, importing, {"renamed.md": "saved 2", "b.md": "below"})
        assert note_id in importing.notes.notes

        os.remove(tmp_path / "renamed.md")
        (tmp_path / "new folder" / "b.md").write_text("last")
        await until(reports, importing, {"renamed.md": "saved 2", "b.md": "last"})
        await reports.aclose()

    asyncio.run(follow())


def test_a_watch_can_be_cancelled(tmp_path: Path) -> None:
    importing = Importing()

    async def cancel() -> None:
        async def follow() -> None:
            async for _ in importing.importer.watch(tmp_path):
                started.set()

        started = asyncio.Event()
        task = asyncio.create_task(follow())
        async with asyncio.timeout(LIMIT_S):
            await started.wait()
            task.cancel()
            await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancel())
