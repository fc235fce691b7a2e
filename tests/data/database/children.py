"""What runs in processes of its own, to race and to be killed."""

import asyncio
from multiprocessing.connection import Connection

from data.clock import SystemClock
from data.database.session import Database
from data.identity import RandomIdentities
from data.repositories.ganas import SqlGanaRepository
from data.repositories.notes import SqlNoteRepository
from domain.entities.gana import GanaRun
from tests.data.repositories.samples import START, at, note

BATCH = 10


def open_database(url: str, start: Connection, report: Connection) -> None:
    """Brings the schema up to date the moment it is told to start."""

    async def main() -> None:
        async with Database(url):
            pass

    report.send("ready")
    start.poll(None)
    try:
        asyncio.run(main())
    except Exception as error:
        report.send(repr(error))
        raise
    report.send("opened")


def claim_ticks(url: str, name: str, ticks: int, start: Connection, report: Connection) -> None:
    """Claims one due time after another, against others who do the same; publishes a note for each."""

    async def main() -> list[int]:
        claimed: list[int] = []
        async with Database(url) as database:
            ganas = SqlGanaRepository(database, RandomIdentities(SystemClock()))
            report.send("ready")
            start.poll(None)
            while (due_at := (await ganas.get("g")).due_at) is not None:
                number = round((due_at - START).total_seconds())
                following = at(number + 1) if number + 1 < ticks else None
                tick = await ganas.claim("g", due_at, following, by=name, now=START)
                if tick is None:
                    continue
                claimed.append(number)
                run = GanaRun(
                    id=f"{name}-{number}",
                    gana_id="g",
                    due_at=due_at,
                    status="succeeded",
                    started_at=at(number),
                )
                assert await ganas.complete(tick, run, cursor=None, publish=note(f"{name}-{number}"))
        return claimed

    report.send(asyncio.run(main()))


def write_batches(url: str, first: int, report: Connection) -> None:
    """Saves batches of notes that link to one another, replaces the one before, and tells of each when it is written."""

    async def main() -> None:
        async with Database(url) as database:
            notes = SqlNoteRepository(database)
            batch = first
            while True:
                await notes.save(
                    [
                        note(f"b{batch}-{n}", f"batch{batch} " + "words " * 500, tags=["t"], links=("x", "y"))
                        for n in range(BATCH)
                    ]
                )
                report.send(batch)
                batch += 1

    asyncio.run(main())
