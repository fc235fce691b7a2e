"""Runs due Ganas while the app is closed: one a tick, with a database session and an engine of its own.

There is no container here, and nothing is shared with the app but the database, in which a tick is claimed before it is
run. When the app opens, the run stops at its next token and its tick stays due.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from background.readiness import tell_service_manager
from data.clock import Clock, SystemClock
from data.database.session import Database, sqlite_url
from data.gana.due_times import CalendarDueTimes
from data.gana.holders import ClaimHolders
from data.gana.lease import TickLeases
from data.gana.wakeups import Wakeups
from data.gana.webhook import HttpWebhook
from data.identity import RandomIdentities
from data.inference.remote.servers import RemoteServers
from data.inference.supervisor import EngineRunner
from data.markdown.parser import MarkdownNoteParser
from data.models.store import FileModelStore
from data.note_changes import LocalNoteChanges
from data.presence import Presence
from data.repositories.ganas import SqlGanaRepository
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from data.scheduling.devices import Devices
from data.settings import Settings
from domain.entities.gana import Gana, GanaRun
from domain.errors import UniunError
from domain.repositories.inference_runner import InferenceRunner
from domain.repositories.model_store import ModelStore
from domain.usecases.gana import GanaEngine, GanaMaterial
from domain.usecases.gana_calendar import Fire, GanaCalendar
from domain.usecases.gana_tools import NewestPassages
from domain.usecases.llm import GenerateOneShotUseCase
from domain.usecases.notes import ComposeNote

LOOK_FOR_APP_S = 0.25
ASLEEP = timedelta(minutes=3)
"""So much more than an interval between two ticks, and the machine was asleep."""


class BackgroundProcess:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        settings: Settings,
        *,
        tell: Callable[[str], None] = lambda line: None,
        look_again: Callable[[], Settings] | None = None,
        clock: Clock | None = None,
        store: ModelStore | None = None,
        make_runner: Callable[[], InferenceRunner] | None = None,
    ) -> None:
        self._settings = settings
        self._look_again = look_again or (lambda: settings)
        self._tell = tell
        self._clock = clock or SystemClock()
        self._given_store = store
        self._store = store or self._file_store()
        self._make_runner = make_runner or self._engine_runner
        self._presence = Presence(settings.data_dir)
        self._identities = RandomIdentities(self._clock)
        self._database = Database(settings.database_url or sqlite_url(settings.data_dir / "uniun.db"))
        self._notes = SqlNoteRepository(self._database)
        self._ganas = SqlGanaRepository(
            self._database, self._identities, holders=ClaimHolders(settings.data_dir)
        )
        self._calendar = GanaCalendar(
            self._ganas, self._notes, CalendarDueTimes(), self._identities, by="background"
        )
        self._bell = asyncio.Event()
        self._ticked_at: datetime | None = None
        self._awake_since = self._clock.now()
        self._unmended = False
        """The clock may have been set since the due times were looked through, be it while the app was open."""
        self._left: set[tuple[str, datetime | None]] = set()
        """Ticks that were logged as left to the app."""

    async def run(self) -> None:
        """Ticks every interval. Raises `InvalidRequest` if another background process runs."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._presence.background())
            stack.push_async_callback(self._database.aclose)
            wakeups = Wakeups(self._bell)
            wakeups.start()
            stack.callback(wakeups.stop)
            tell_service_manager()
            self._tell(f"The background process looks for due Ganas every {self._interval_s:g} s.")
            settled = False
            while True:
                self._bell.clear()
                try:
                    if not settled:
                        await self._ganas.settle_running(self._clock.now(), by="background")
                        settled = True
                    await self.tick()
                except UniunError as error:
                    self._tell(f"This tick failed, the next one tries again. {error}")
                self._retune()
                interval_s = self._interval_s
                wakeups.at(self._clock.now() + timedelta(seconds=interval_s))
                try:
                    # The alarm goes by the wall clock, which may be set back.
                    async with asyncio.timeout(2 * interval_s):
                        await self._bell.wait()
                except TimeoutError:
                    pass

    @property
    def _interval_s(self) -> float:
        return self._settings.background_interval_s

    def _retune(self) -> None:
        """Takes over what the user has chosen since."""
        try:
            now = self._look_again()
        except UniunError as error:
            self._tell(f"The settings stay as they were. {error}")
            return
        tuned = ("background_interval_s", "scheduler", "engine")
        self._settings = self._settings.model_copy(update={name: getattr(now, name) for name in tuned})
        self._store = self._given_store or self._file_store()

    async def tick(self) -> GanaRun | None:
        """Runs one due Gana, if the app is closed and there is one."""
        now = self._clock.now()
        before, self._ticked_at = self._ticked_at, now
        longest = ASLEEP + timedelta(seconds=self._settings.background_interval_s)
        slept = before is None or not timedelta(0) <= now - before <= longest
        if slept:
            self._awake_since = now
            self._unmended = True
        if self._presence.app_is_open():
            return None
        if self._unmended:
            await self._calendar.mend()
            self._unmended = False
        fire = await self._take()
        if fire is None:
            return None
        run = await self._run_unless_app_opens(fire)
        # A long run is no sleep.
        self._ticked_at = self._clock.now()
        self._unmended = self._ticked_at < now
        return run

    async def _take(self) -> Fire | None:
        for gana in await self._calendar.due():
            if self._calendar.left_to_app(gana):
                await self._leave(gana)
                continue
            fire = await self._calendar.take(gana, self._awake_since)
            if fire is not None:
                return fire
        return await self._calendar.react()

    async def _run_unless_app_opens(self, fire: Fire) -> GanaRun | None:
        name = fire.gana.draft.name
        make_remote = RemoteServers(self._clock).runner
        async with Devices(
            self._make_runner(), make_remote, self._store, self._clock, self._settings.scheduler
        ) as devices:
            engine = self._engine(GenerateOneShotUseCase(devices, self._store))
            running = asyncio.ensure_future(
                engine.process_gana(fire.gana, "cron", tick=fire.tick, deadline=fire.deadline)
            )
            try:
                while not running.done():
                    await asyncio.wait({running}, timeout=LOOK_FOR_APP_S)
                    if self._presence.app_is_open():
                        running.cancel()
                        await asyncio.wait({running})
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        if running.cancelled():
            self._tell(f"{name}: the app was opened, so its tick is left to it.")
            return None
        run = running.result()
        self._tell(f"{name}: {run.status}{f' ({run.reason})' if run.reason else ''}. {run.detail}".rstrip())
        return run

    def _engine(self, generate: GenerateOneShotUseCase) -> GanaEngine:
        return GanaEngine(
            ganas=self._ganas,
            material=GanaMaterial(
                notes=self._notes,
                knowledge=SqlKnowledgeRepository(self._database),
                passages=NewestPassages(self._notes),
                compose=ComposeNote(MarkdownNoteParser(), self._identities),
                changes=LocalNoteChanges(),
            ),
            generate=generate,
            models=self._store,
            leases=TickLeases(self._ganas, self._clock),
            webhook=HttpWebhook(),
            identities=self._identities,
            by="background",
        )

    def _file_store(self) -> ModelStore:
        limit = self._settings.engine.context_limit
        return FileModelStore(self._settings.data_dir, self._clock, context_limit=limit)

    def _engine_runner(self) -> InferenceRunner:
        return EngineRunner(self._store, self._settings.engine, self._clock)

    async def _leave(self, gana: Gana) -> None:
        """Says once in the log why nothing happens; the tick stays due."""
        mark = (gana.id, gana.due_at)
        if mark in self._left:
            return
        self._left = {each for each in self._left if each[0] != gana.id} | {mark}
        now = self._identities.now()
        await self._ganas.put_run(
            GanaRun(
                id=self._identities.new_id(),
                gana_id=gana.id,
                due_at=gana.due_at,
                status="skipped",
                reason="needs_app",
                detail="It calls tools or a webhook, which only the app does. It runs when the app is opened.",
                started_at=now,
                by="background",
            )
        )
