"""A background process, or an app with nothing but its Ganas, over a model that takes a given time for a word.

    python slow_program.py background|app DATA_DIR WORD_S

Everything but the model is real: database, claims, locks, signals. The app uses UNIUN_DATABASE_URL where it is set, as on
several machines, and leases of LEASE_S seconds.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from background.process import BackgroundProcess
from data.clock import SystemClock
from data.database.session import Database, sqlite_url
from data.gana.due_times import CalendarDueTimes
from data.gana.holders import ClaimHolders
from data.gana.lease import TickLeases
from data.gana.ticker import GanaTicker
from data.gana.webhook import HttpWebhook
from data.identity import RandomIdentities
from data.inference.fake import FakeRunner
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from data.presence import Presence
from data.repositories.ganas import LEASE_S as DEFAULT_LEASE_S
from data.repositories.ganas import SqlGanaRepository
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from data.scheduling.dispatcher import Dispatcher
from data.settings import Settings
from domain.usecases.gana import GanaEngine, GanaMaterial
from domain.usecases.gana_calendar import GanaCalendar
from domain.usecases.gana_tools import NewestPassages
from domain.usecases.llm import GenerateOneShotUseCase
from domain.usecases.notes import ComposeNote
from tests.fakes import MemoryStore

WORD_S = float(sys.argv[3])
LEASE_S = float(os.environ.get("LEASE_S", DEFAULT_LEASE_S))


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class SlowRunner(FakeRunner):
    """With a second a word, whatever is to happen meanwhile has time to, on any machine."""

    def __init__(self) -> None:
        super().__init__(("tiny",), answer=lambda job: "word " * 100)

    async def _boundary_allowed(self) -> None:
        await asyncio.sleep(WORD_S)


async def app(data_dir: Path) -> None:
    """What `uniun chat` starts, as far as Ganas go."""
    clock = SystemClock()
    identities, store = RandomIdentities(clock), MemoryStore("tiny")
    async with (
        Presence(data_dir).app(),
        Database(os.environ.get("UNIUN_DATABASE_URL") or sqlite_url(data_dir / "uniun.db")) as database,
        Dispatcher(SlowRunner(), store, clock) as dispatcher,
    ):
        holders = ClaimHolders(data_dir)
        ganas = SqlGanaRepository(database, identities, lease_s=LEASE_S, holders=holders)
        leases = TickLeases(ganas, clock, period_s=LEASE_S / 4)
        notes = SqlNoteRepository(database)
        material = GanaMaterial(
            notes,
            SqlKnowledgeRepository(database),
            NewestPassages(notes),
            ComposeNote(MarkdownNoteParser(), identities),
            LocalNoteChanges(),
        )
        generate = GenerateOneShotUseCase(dispatcher, store)
        engine = GanaEngine(ganas, material, generate, store, leases, HttpWebhook(), identities)
        calendar = GanaCalendar(ganas, notes, CalendarDueTimes(), identities)
        tell("open")
        await GanaTicker(calendar, engine, ganas, clock).run()


async def main(mode: str, data_dir: Path) -> None:
    settings = Settings(data_dir=data_dir, log_dir=data_dir, background_interval_s=0.2)
    if mode == "app":
        work = asyncio.ensure_future(app(data_dir))
    else:
        process = BackgroundProcess(
            settings,
            tell=tell,
            store=MemoryStore("tiny"),
            make_runner=SlowRunner,
        )
        work = asyncio.ensure_future(process.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        tell("ended")


asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
