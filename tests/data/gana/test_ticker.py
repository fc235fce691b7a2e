"""Ticks over a clock that sleeps, jumps and is set back. Nothing here waits for real time but the last three tests."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from data.clock import SystemClock
from data.gana.ticker import GanaTicker
from data.identity import RandomIdentities
from domain.entities.gana import Gana, GanaRun
from domain.entities.note import Note, hash_content
from domain.errors import DatabaseError, EngineError, JobCancelled, QueueFull
from domain.usecases.gana_book import EnableGanaUseCase, SaveGanaUseCase
from domain.usecases.gana_calendar import Fire, GanaCalendar
from tests.fakes import HOLD, ScriptedCoordinator, answer
from tests.memory.clock import HandClock
from tests.memory.gana_faces import BERLIN
from tests.memory.gana_world import GanaWorld


def berlin(month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN).astimezone(UTC)


class World(GanaWorld):
    """A ticker whose clock stands still unless a test moves it."""

    def __init__(self, start: datetime, coordinator: ScriptedCoordinator | None = None) -> None:
        self.clock = HandClock(start)
        super().__init__(coordinator, identities=RandomIdentities(self.clock))
        self.calendar = GanaCalendar(self.ganas, self.notes, self.due_times, self.identities)
        self.ticker = self.opened()

    def opened(self) -> GanaTicker:
        """As when the app is started."""
        return GanaTicker(self.calendar, self.engine, self.ganas, self.clock)

    async def scheduled(self, name: str, **fields: Any) -> Gana:
        """As the user makes one, switched on."""
        library = self.library
        save = SaveGanaUseCase(self.ganas, library.manases, library.notes, self.due_times, self.identities)
        draft = (await self.gana(name, **fields)).draft
        await self.ganas.delete(f"id-{name}")
        created = await save.create(draft)
        return await EnableGanaUseCase(self.ganas, self.due_times, self.identities)(created.id, on=True)

    async def look(self) -> None:
        await self.ticker.look()
        await self.ticker.idle()

    async def pass_time(self, until: datetime, step_s: float = 60.0) -> None:
        """The app is open all the while and looks every so often."""
        while self.clock.now() < until:
            await self.look()
            self.clock.run(step_s)

    async def pass_quietly(self, *, minutes: int) -> None:
        """The same while runs are going on."""
        for _ in range(minutes):
            await self.ticker.look()
            for _ in range(50):
                await asyncio.sleep(0)
            self.clock.run(60)

    async def fired(self, name: str = "g") -> list[GanaRun]:
        """Oldest first."""
        gana = await self.ganas.get(name)
        return list(reversed(await self.ganas.runs(gana.id)))

    async def walls(self, name: str = "g") -> list[str]:
        return [
            f"{run.due_at.astimezone(BERLIN):%d %H:%M}"
            for run in await self.fired(name)
            if run.due_at is not None
        ]


def test_a_daily_gana_fires_each_morning() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 50))
        await world.scheduled("g", cron="0 8 * * *")
        await world.pass_time(berlin(1, 7, 9), step_s=59)
        assert await world.walls() == ["05 08:00", "06 08:00", "07 08:00"]
        deadlines = [request.deadline for request in world.coordinator.requests]
        assert deadlines == [berlin(1, day, 8) for day in (5, 6, 7)]

    asyncio.run(scenario())


@pytest.mark.parametrize(("month", "day"), [(3, 29), (10, 25)])
def test_neither_clock_change_fires_twice_or_not_at_all(month: int, day: int) -> None:
    async def scenario() -> None:
        world = World(berlin(month, day - 1, 12))
        await world.scheduled("night", cron="30 2 * * *")
        await world.scheduled("hours", interval_minutes=60)
        await world.pass_time(berlin(month, day + 1, 1), step_s=50)
        assert len(await world.fired("night")) == 1
        world.clock.run(3600 * 3)
        await world.pass_time(berlin(month, day + 1, 5), step_s=50)
        assert len(await world.fired("night")) == 2
        starts = [run.due_at for run in await world.fired("hours") if run.due_at is not None]
        steps = {later - earlier for earlier, later in pairwise(starts)}
        assert steps <= {timedelta(hours=1), timedelta(hours=4)}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("latest", ["06 08:00"]),
        ("skip", []),
        ("all", ["06 08:00", "07 08:00", "08 08:00"]),
    ],
)
def test_three_days_asleep(policy: str, expected: list[str]) -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", cron="0 8 * * *", missed_runs=policy)
        await world.look()
        world.clock.jump(days=2, hours=22)
        for _ in range(10):
            await world.look()
            world.clock.run(20)
        runs = await world.fired()
        assert [f"{run.due_at:%d}" for run in runs if run.due_at and run.status == "succeeded"] == [
            text[:2] for text in expected
        ]
        if policy == "latest":
            assert world.coordinator.requests[0].deadline == berlin(1, 8, 8)
        if policy == "skip":
            assert [(run.status, run.reason) for run in runs] == [("skipped", "missed")]
        gana = await world.ganas.get("g")
        assert gana.due_at == berlin(1, 9, 8)

    asyncio.run(scenario())


def test_a_tick_that_only_waited_its_turn_was_not_missed() -> None:
    async def scenario() -> None:
        coordinator = ScriptedCoordinator([HOLD], [HOLD], [HOLD], [HOLD], answer("Done."))
        world = World(berlin(1, 5, 7, 59), coordinator)
        for number in range(6):
            await world.scheduled(f"g{number}", cron="0 8 * * *", missed_runs="skip")
        await world.pass_quietly(minutes=12)
        assert len(coordinator.jobs) == 4
        for gana in await world.ganas.all():
            world.engine.stop(gana.id)
        await world.ticker.idle()
        await world.look()
        reasons = sorted(str(run.reason) for run in await world.ganas.runs())
        assert reasons == ["None"] * 2 + ["stopped"] * 4

    asyncio.run(scenario())


def test_sixteen_daily_ganas_and_three_days_off_come_one_at_a_time() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        for number in range(16):
            await world.scheduled(f"g{number:02}", cron=f"{number} 8 * * *")
        world.clock.jump(days=3)
        world.ticker = world.opened()
        running: list[int] = []
        moments: list[float] = []
        for _ in range(16 * 20):
            before = len(world.coordinator.requests)
            await world.ticker.look()
            running.append(len(world.ticker._runs))
            await world.ticker.idle()
            if len(world.coordinator.requests) > before:
                moments.append(world.clock.monotonic())
            world.clock.run(1)
        assert max(running) == 1
        assert len(world.coordinator.requests) == 16
        assert min(b - a for a, b in pairwise(moments)) >= 10
        assert len(await world.ganas.runs(limit=1000)) == 16

    asyncio.run(scenario())


def test_what_is_due_now_does_not_wait_behind_what_was_missed() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("old1", cron="0 8 * * *")
        await world.scheduled("old2", cron="1 8 * * *")
        world.clock.jump(days=1)
        await world.scheduled("now", cron="0 12 * * *")
        await world.look()
        world.clock.wall = berlin(1, 7, 12)
        world.ticker._awake_since = world.ticker._looked_at = world.clock.wall
        await world.ticker.look()
        await world.ticker.idle()
        assert await world.walls("now") == ["07 12:00"]

    asyncio.run(scenario())


@pytest.mark.parametrize("hours", [1, 2, 24])
def test_a_clock_that_is_set_back_fires_nothing_twice(hours: int) -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 55))
        await world.scheduled("daily", cron="0 8 * * *")
        await world.scheduled("hourly", cron="0 * * * *")
        await world.pass_time(berlin(1, 5, 8, 30))
        world.clock.jump(hours=-hours)
        await world.pass_time(berlin(1, 6, 8, 30), step_s=170)
        for name, expected in (("daily", ["05 08:00", "06 08:00"]), ("hourly", None)):
            walls = await world.walls(name)
            assert len(walls) == len(set(walls))
            assert expected is None or walls == expected

    asyncio.run(scenario())


@pytest.mark.parametrize("hours", [1, 8, 24, 100])
def test_a_clock_that_is_set_back_does_not_stop_what_runs_every_hour(hours: int) -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 55))
        await world.scheduled("g", interval_minutes=60)
        await world.pass_time(berlin(1, 5, 9, 30))
        before = len(await world.fired())
        world.clock.jump(hours=-hours)
        start = world.clock.now()
        await world.pass_time(start + timedelta(hours=3, minutes=30))
        after = [run.due_at - start for run in (await world.fired())[before:] if run.due_at is not None]
        assert after == [timedelta(hours=hour) for hour in (1, 2, 3)]

    asyncio.run(scenario())


def test_a_reaction_that_fails_is_not_repeated_at_once_though_the_clock_was_set_back() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12), ScriptedCoordinator(*[[EngineError("It fell over.")]] * 99))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        await world.note("Bread rose.", "inbox")
        await world.look()
        world.clock.jump(hours=-8)
        await world.pass_time(world.clock.now() + timedelta(minutes=2), step_s=5)
        assert len(world.coordinator.requests) == 2

    asyncio.run(scenario())


def test_a_clock_that_was_a_year_ahead_loses_no_year() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 55))
        world.clock.jump(days=365)
        await world.scheduled("g", cron="0 8 * * *", input_tag="inbox", reactive=True)
        await world.pass_time(world.clock.now() + timedelta(minutes=10))
        world.clock.jump(days=-365)
        await world.look()
        gana = await world.ganas.get("g")
        assert gana.due_at is not None
        assert gana.due_at <= world.clock.now() + timedelta(days=1)
        # Once is enough: a morning slept through later is not taken for the same thing.
        world.clock.jump(days=2)
        await world.look()
        assert "06 08:00" in await world.walls()

    asyncio.run(scenario())


def test_a_burst_of_notes_is_one_reaction_three_seconds_later() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        await world.look()
        for n in range(5):
            world.clock.run(1)
            note = await world.note(f"Note {n}.", "inbox")
            world.ticker.wake([note.id])
            await world.look()
        assert not world.coordinator.requests
        world.clock.run(2.9)
        await world.look()
        assert not world.coordinator.requests
        world.clock.run(0.1)
        await world.look()
        (request,) = world.coordinator.requests
        assert request.deadline == world.clock.now()
        assert len((await world.fired())[0].input_note_ids) == 5
        await world.look()
        assert len(world.coordinator.requests) == 1

    asyncio.run(scenario())


def test_a_note_is_reacted_to_once_however_often_it_is_edited() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        await world.look()

        async def save(note: Note, text: str, *tags: str) -> int:
            edited = note.model_copy(
                update={"text": text, "tags": tags, "content_hash": hash_content(note.title, text, tags)}
            )
            await world.notes.save([edited])
            world.ticker.wake([note.id])
            world.clock.run(3)
            await world.look()
            return len(world.coordinator.requests)

        note = await world.note("Bread rose.")
        assert await save(note, "Bread rose.") == 0
        assert await save(note, "Bread rose.", "inbox") == 1, "it newly got the tag"
        assert await save(note, "Bread rose. Yeast.", "inbox") == 1
        assert await save(note, "Bread rose.", "inbox") == 1
        assert await save(note, "Bread rose.") == 1
        assert await save(note, "Bread rose.", "inbox") == 1, "the tag was taken away and put back"

    asyncio.run(scenario())


def test_notes_without_end_are_reacted_to_all_the_same() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        await world.look()
        for n in range(65):
            world.clock.run(1)
            world.ticker.wake([(await world.note(f"Note {n}.", "inbox")).id])
            await world.look()
        assert len(world.coordinator.requests) == 2

    asyncio.run(scenario())


def test_notes_that_another_process_wrote_are_found_by_looking() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        world.clock.run(5)
        await world.note("From outside.", "inbox")
        await world.look()
        assert len(world.coordinator.requests) == 1

    asyncio.run(scenario())


def test_a_reaction_that_fails_is_not_tried_without_end() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12), ScriptedCoordinator([EngineError("It broke.")]))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        world.clock.run(5)
        await world.note("Bread rose.", "inbox")
        await world.pass_time(world.clock.now() + timedelta(seconds=55), step_s=5)
        assert len(world.coordinator.requests) == 1
        await world.note("News.", "inbox")
        await world.look()
        assert len(world.coordinator.requests) == 2

    asyncio.run(scenario())


def test_after_failures_a_reaction_waits_longer_and_longer_and_its_log_says_so() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12), ScriptedCoordinator(*[[EngineError("It broke.")]] * 99))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        world.clock.run(5)
        await world.note("Bread rose.", "inbox")
        start = world.clock.now()
        await world.pass_time(start + timedelta(minutes=40), step_s=1)
        runs = await world.fired()
        after = [(run.started_at - start).total_seconds() / 60 for run in runs]
        gaps = [later - earlier for earlier, later in pairwise(after)]
        for gap, told in zip(gaps, (1, 3, 9, 10, 10), strict=False):
            assert told <= gap <= told + 1.1, gaps
        assert [run.detail for run in runs[:2]] == [
            "It broke. It tries again in about 1 minute.",
            "It broke. It tries again in about 3 minutes.",
        ]

    asyncio.run(scenario())


def test_a_reaction_that_was_killed_comes_again_within_seconds_and_not_without_end() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12), ScriptedCoordinator(*[[JobCancelled("Gone.")]] * 99))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        world.clock.run(5)
        await world.note("Bread rose.", "inbox")
        start = world.clock.now()
        await world.pass_time(start + timedelta(minutes=40), step_s=1)
        after = [int((run.started_at - start).total_seconds()) for run in await world.fired()]
        assert after[0] == 0
        assert after[1] <= 15, after
        gaps = [later - earlier for earlier, later in pairwise(after)]
        assert max(gaps) <= 11 * 60
        assert len(after) <= 10, after

    asyncio.run(scenario())


def test_a_reaction_of_a_process_that_was_killed_comes_again_at_the_next_start() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        note = await world.note("Bread rose.", "inbox")
        fire = await world.calendar.react()
        assert fire is not None
        await world.ganas.put_run(
            GanaRun(id="r", gana_id=fire.gana.id, due_at=None, status="running", started_at=world.clock.now())
        )
        await world.ganas.release(fire.tick)  # as the lease of a dead process ends
        world.clock.run(2)
        await world.ganas.settle_running(world.clock.now(), by="app")
        world.ticker = world.opened()
        await world.look()
        assert not world.coordinator.requests
        world.clock.run(5)
        await world.look()
        assert (await world.fired())[-1].input_note_ids == (note.id,)

    asyncio.run(scenario())


def test_a_gana_does_not_react_to_its_own_note() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", output_tag="inbox", reactive=True)
        await world.scheduled("other", input_tag="inbox", output_tag="inbox", reactive=True)
        world.clock.run(5)
        await world.note("Bread rose.", "inbox")
        await world.pass_time(world.clock.now() + timedelta(minutes=5), step_s=5)
        assert len(world.coordinator.requests) == 2

    asyncio.run(scenario())


def test_a_tick_that_was_cut_off_is_tried_again_a_minute_later() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 59), ScriptedCoordinator([QueueFull(1, 1)], [QueueFull(1, 1)]))
        await world.scheduled("g", cron="0 8 * * *")
        world.clock.run(61)
        for _ in range(50):
            await world.look()
            world.clock.run(1)
        assert len(world.coordinator.requests) == 1
        world.clock.run(15)
        await world.look()
        assert len(world.coordinator.requests) == 2

    asyncio.run(scenario())


def test_closing_leaves_the_tick_due() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 59), ScriptedCoordinator([HOLD]))
        await world.scheduled("g", cron="0 8 * * *")
        world.clock.run(61)
        await world.ticker.look()
        for _ in range(100):
            await asyncio.sleep(0)
        assert world.coordinator.jobs
        await world.ticker.aclose()
        (due,) = await world.ganas.due(world.clock.now(), 5)
        assert due.due_at == berlin(1, 5, 8)
        assert not world.ganas.published

    asyncio.run(scenario())


def test_it_wakes_by_itself_at_the_due_time() -> None:
    """Real time: APScheduler rings at the due time, long before it would look anyway."""

    async def scenario() -> None:
        world = World(berlin(1, 5))
        clock = SystemClock()
        identities = RandomIdentities(clock)
        world.engine.identities = identities
        calendar = GanaCalendar(world.ganas, world.notes, world.due_times, identities)
        ticker = GanaTicker(calendar, world.engine, world.ganas, clock)
        soon = clock.now() + timedelta(seconds=0.3)
        await world.gana("g", due_at=soon, mode="one_shot", once_at=soon)
        running = asyncio.create_task(ticker.run())
        async with asyncio.timeout(120):
            while not world.ganas.published:  # noqa: ASYNC110 - the fake repository tells nobody
                await asyncio.sleep(0.02)
        assert clock.now() >= soon
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())


def test_a_note_that_another_program_saved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody wakes the ticker, and nothing is due."""
    monkeypatch.setattr("data.gana.ticker.FIRST_LOOKS_S", 0.01)
    monkeypatch.setattr("data.gana.ticker.NEWS_S", 0.01)

    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        looked, react, looks = asyncio.Event(), world.calendar.react, iter(range(1_000_000))

        async def reacting() -> Fire | None:
            fire = await react()
            if next(looks):  # the first looks at the start are over
                looked.set()
            return fire

        world.calendar.react = reacting  # type: ignore[method-assign]
        running = asyncio.create_task(world.ticker.run())
        async with asyncio.timeout(120):
            await looked.wait()
            await world.note("Bread rose.", "inbox")
            while not world.ganas.published:  # noqa: ASYNC110 - the fake repository tells nobody
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())


def test_a_reaction_whose_end_the_database_did_not_take_comes_again_when_it_is_back() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 12))
        await world.scheduled("g", input_tag="inbox", reactive=True)
        world.clock.run(5)
        note = await world.note("Bread rose.", "inbox")

        async def away(*arguments: Any, **fields: Any) -> bool:
            raise DatabaseError("It is away.")

        ganas: Any = world.ganas
        kept = ganas.complete, ganas.release
        ganas.complete = ganas.release = away
        await world.look()
        assert [run.status for run in await world.fired()] == ["running"]
        ganas.complete, ganas.release = kept
        await world.pass_time(world.clock.now() + timedelta(minutes=3), step_s=5)
        lost, done = await world.fired()
        assert (lost.status, lost.reason) == ("failed", "cancelled")
        assert (done.status, done.input_note_ids) == ("succeeded", (note.id,))
        assert len(world.ganas.published) == 1

    asyncio.run(scenario())


def test_a_database_that_is_away_ends_nothing() -> None:
    async def scenario() -> None:
        world = World(berlin(1, 5, 7, 59))

        async def away(now: datetime, *, by: str) -> int:
            raise DatabaseError("The disk is full.")

        kept, world.ganas.settle_running = world.ganas.settle_running, away  # type: ignore[method-assign]
        running = asyncio.create_task(world.ticker.run())
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.ticker.error == "The disk is full."
        world.ganas.settle_running = kept  # type: ignore[method-assign]
        world.ticker.wake()
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.ticker.error is None
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
