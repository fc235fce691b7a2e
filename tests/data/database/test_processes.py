"""Several processes on one database, and processes that are killed."""

import asyncio
import multiprocessing
import random
import sqlite3
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url

from data.database.schema import HEAD
from data.database.session import Database
from data.repositories.ganas import SqlGanaRepository
from data.repositories.note_index import matches
from data.repositories.notes import SqlNoteRepository
from domain.entities.gana import Gana, GanaDraft
from tests.data.database import children
from tests.data.repositories.samples import START, at
from tests.memory.identity import CountingIdentities

TICKS = 200
KILLS = 20

# Children fork from a process that has imported everything, and that has no threads.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([children.__name__])


class Child:
    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        self.report, theirs = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=target, args=(*arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def hear(self) -> Any:
        assert self.report.poll(60), "a child says nothing"
        return self.report.recv()

    def kill(self) -> list[Any]:
        """Returns what it had still said."""
        self._process.kill()
        self._process.join()
        said = []
        try:
            while self.report.poll():
                said.append(self.report.recv())
        except (EOFError, OSError):
            pass
        return said

    def join(self) -> None:
        self._process.join(60)
        assert self._process.exitcode == 0


def _starters(count: int) -> tuple[list[Connection], Callable[[], None]]:
    """What children wait on, and what lets all of them go."""
    pipes = [_processes.Pipe(duplex=False) for _ in range(count)]

    def go() -> None:
        for _, ours in pipes:
            ours.send("go")

    return [theirs for theirs, _ in pipes], go


def test_processes_that_start_at_once_migrate_once(blank_url: str) -> None:
    starts, go = _starters(4)
    opening = [Child(children.open_database, blank_url, start) for start in starts]
    assert [child.hear() for child in opening] == ["ready"] * 4
    go()
    assert [child.hear() for child in opening] == ["opened"] * 4
    for child in opening:
        child.join()

    async def main() -> None:
        async with Database(blank_url) as database:
            found = await database.read(
                lambda session: (
                    session.connection().execute(text("SELECT version_num FROM alembic_version")).all()
                )
            )
            assert [tuple(row) for row in found] == [(HEAD,)]

    asyncio.run(main())


def test_two_processes_race_for_every_tick(url: str) -> None:
    async def prepare() -> None:
        async with Database(url) as database:
            draft = GanaDraft(name="g", task="t", interval_minutes=5)
            gana = Gana(id="g", draft=draft, enabled=True, due_at=at(0), created_at=START)
            await SqlGanaRepository(database, CountingIdentities()).put(gana)

    asyncio.run(prepare())
    starts, go = _starters(2)
    racing = [
        Child(children.claim_ticks, url, name, TICKS, start)
        for name, start in zip(("x", "y"), starts, strict=True)
    ]
    assert [child.hear() for child in racing] == ["ready", "ready"]
    go()
    claimed = [child.hear() for child in racing]
    for child in racing:
        child.join()
    assert sorted(claimed[0] + claimed[1]) == list(range(TICKS))

    async def check() -> None:
        async with Database(url) as database:
            published = await SqlNoteRepository(database).note_ids(None)
            assert sorted(int(note_id[2:]) for note_id in published) == list(range(TICKS))

    asyncio.run(check())


def test_a_killed_writer_leaves_whole_transactions(url: str) -> None:
    choice = random.Random(11)
    told = 0
    for _ in range(KILLS):
        child = Child(children.write_batches, url, told)
        for _ in range(choice.randrange(4)):
            told = child.hear() + 1
        # Somewhere within the next batch: as many turns of this loop as chance says.
        for _ in range(choice.randrange(200_000)):
            pass
        for batch in child.kill():
            told = batch + 1
    if make_url(url).get_backend_name() == "sqlite":
        with sqlite3.connect(str(make_url(url).database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            connection.execute("INSERT INTO note_search (note_search) VALUES ('integrity-check')")

    async def check() -> None:
        async with Database(url) as database:
            notes = SqlNoteRepository(database)
            written = {int(note_id[1:].split("-")[0]) for note_id in await notes.note_ids(None)}
            # What was told is there; at most the batch that was being told is there besides.
            assert set(range(told)) <= written <= set(range(told + 1))
            count = await notes.count()
            assert count == children.BATCH * len(written)

            def counts(session: Any) -> list[int]:
                tables = {
                    "note_tag": 1,
                    "note_name": 1,
                    "note_link": 2,
                    "pending_vector": 1,
                    "pending_extraction": 1,
                }
                return [
                    session.connection().execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
                    // per_note
                    for table, per_note in tables.items()
                ]

            assert await database.read(counts) == [count] * 5
            found = await database.read(
                lambda session: matches(session, [("words", False)], manas_id=None, limit=10_000)
            )
            assert len(found) == count

    asyncio.run(check())
