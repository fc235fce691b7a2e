"""The background process within this one, over a real database and a model in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from background.process import BackgroundProcess
from data.inference.fake import FakeRunner
from data.presence import Presence
from data.settings import Settings
from domain.errors import InvalidRequest
from domain.repositories.inference_runner import RunnerJob
from tests.background.desk import Desk
from tests.fakes import MemoryStore

Scenario = Callable[[Desk, "Background"], Awaitable[None]]


class Background(BackgroundProcess):
    """Remembers what the model was asked, and which engines it started."""

    def __init__(self, data_dir: Path, **runner: Any) -> None:
        self.jobs: list[RunnerJob] = []
        self.runners: list[FakeRunner] = []
        self.lines: list[str] = []
        self.looks = 0

        def answer(job: RunnerJob) -> str:
            self.jobs.append(job)
            return "Two things happened."

        def make() -> FakeRunner:
            self.runners.append(FakeRunner(("tiny",), answer=answer, **runner))
            return self.runners[-1]

        super().__init__(
            Settings(data_dir=data_dir, log_dir=data_dir, background_interval_s=0.05),
            tell=self.lines.append,
            store=MemoryStore("tiny"),
            make_runner=make,
            look_again=self._asked,
        )

    def _asked(self) -> Settings:
        """How the settings are by now: the first look finds a damaged file, the next ones a longer interval."""
        self.looks += 1
        if self.looks == 1:
            raise InvalidRequest("preferences.json cannot be used.")
        return Settings(background_interval_s=0.06)


def play(tmp_path: Path, scenario: Scenario, **runner: Any) -> None:
    async def with_desk() -> None:
        async with Desk(tmp_path) as desk:
            background = Background(tmp_path, **runner)
            try:
                await scenario(desk, background)
            finally:
                await background._database.aclose()

    asyncio.run(with_desk())


def test_a_due_gana_runs_once_with_an_engine_of_its_own(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        gana = await desk.gana("g", input_tag="inbox", output_tag="digest")
        await desk.note("Bread rose.", "inbox")
        run = await background.tick()
        assert run is not None
        assert (run.status, run.by, run.due_at) == ("succeeded", "background", gana.due_at)
        assert await background.tick() is None
        assert await desk.published() == 1
        assert all(runner.closed for runner in background.runners)
        assert len(background.runners) == 1
        after = await desk.ganas.get("g")
        assert after.due_at is not None
        assert gana.due_at is not None
        assert after.due_at == gana.due_at + timedelta(hours=1)

    play(tmp_path, scenario)


def test_while_an_app_is_open_it_does_nothing(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        await desk.gana("g")
        async with Presence(tmp_path).app(), Presence(tmp_path).app():
            assert await background.tick() is None
            assert not background.runners
        assert await background.tick() is not None

    play(tmp_path, scenario)


def test_one_gana_a_tick_longest_overdue_first(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        for number in range(3):
            await desk.gana(f"g{number}", due_in_s=number - 10)
        for number in range(3):
            run = await background.tick()
            assert run is not None
            assert run.gana_id == f"id-g{number}"
        assert await background.tick() is None

    play(tmp_path, scenario)


def test_agents_and_webhooks_are_left_to_the_app_and_hold_nobody_up(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        await desk.gana("agent", due_in_s=-20, agentic=True)
        await desk.gana("hook", due_in_s=-10, webhook="http://127.0.0.1:9/")
        await desk.gana("reacting agent", due_in_s=None, agentic=True, reactive=True, input_tag="inbox")
        await desk.gana("plain")
        await desk.note("Bread rose.", "inbox")
        run = await background.tick()
        assert run is not None
        assert run.gana_id == "id-plain"
        for _ in range(3):
            assert await background.tick() is None
        assert await desk.due() == ["agent", "hook"]
        left = [(run.gana_id, run.reason) for run in await desk.runs() if run.status == "skipped"]
        assert left == [("id-agent", "needs_app"), ("id-hook", "needs_app")]

    play(tmp_path, scenario)


def test_a_reactive_gana_reacts(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        await desk.gana("g", due_in_s=None, reactive=True, input_tag="inbox", interval_minutes=None)
        assert await background.tick() is None
        await desk.note("Bread rose.", "inbox")
        run = await background.tick()
        assert run is not None
        assert run.status == "succeeded"
        assert await background.tick() is None

    play(tmp_path, scenario)


def test_its_knowledge_is_the_newest_notes(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        manas = await desk.manases.create("kitchen")
        for number in range(40):
            note = await desk.note(f"Fact {number}. " + "word " * 100, title=f"Note {number}")
            await desk.manases.add(manas.id, [note.id])
        await desk.gana("g", manas_ids=(manas.id,))
        await background.tick()
        (job,) = background.jobs
        asked = job.messages[1].content
        assert asked.index("Fact 39.") < asked.index("Fact 38.")
        assert "Fact 0." not in asked
        assert len(asked) < 2048 * 3

    play(tmp_path, scenario)


def test_when_the_app_opens_the_run_stops_and_the_tick_stays_due(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        gana = await desk.gana("g", input_tag="inbox")
        await desk.note("Bread rose.", "inbox")
        ticking = asyncio.create_task(background.tick())
        async with asyncio.timeout(120):
            while not background.jobs:  # noqa: ASYNC110 - a fake engine tells nobody
                await asyncio.sleep(0.01)
        async with Presence(tmp_path).app():
            assert await ticking is None
        (left,) = await desk.ganas.due(desk.clock.now(), 5)
        assert (left.due_at, left.cursor) == (gana.due_at, gana.cursor)
        assert await desk.published() == 0
        assert background.runners[0].closed
        assert [(run.status, run.reason) for run in await desk.runs()] == [("skipped", "cancelled")]

    play(tmp_path, scenario, stepped=True)


def test_there_is_one_background_process(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        async with Presence(tmp_path).background():
            assert Presence(tmp_path).background_pid() is not None
            with pytest.raises(InvalidRequest, match="already"):
                await background.run()
        assert Presence(tmp_path).background_pid() is None

    play(tmp_path, scenario)


def test_a_database_that_cannot_be_used_does_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "uniun.db").write_bytes(b"this is no database" * 1000)

    async def scenario() -> None:
        background = Background(tmp_path)
        running = asyncio.create_task(background.run())
        async with asyncio.timeout(120):
            while sum("next one tries again" in line for line in background.lines) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())


def test_a_clock_that_was_set_back_while_the_app_was_open_stops_nothing_when_it_is_closed(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        ahead = await desk.gana("ahead", due_in_s=9 * 3600)
        async with Presence(tmp_path).app():
            assert await background.tick() is None
        assert await background.tick() is None
        mended = await desk.ganas.get(ahead.id)
        assert mended.due_at is not None
        assert mended.due_at <= desk.clock.now() + timedelta(hours=1)

    play(tmp_path, scenario)


def test_a_clock_that_was_hours_ahead_does_not_stop_what_runs_every_hour(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        ahead = await desk.gana("ahead", due_in_s=9 * 3600)
        assert await background.tick() is None
        mended = await desk.ganas.get(ahead.id)
        assert mended.due_at is not None
        assert mended.due_at <= desk.clock.now() + timedelta(hours=1)

    play(tmp_path, scenario)


def test_it_ticks_until_it_is_cancelled(tmp_path: Path) -> None:
    async def scenario(desk: Desk, background: Background) -> None:
        running = asyncio.create_task(background.run())
        await desk.gana("one", due_in_s=-1)
        await desk.gana("two", due_in_s=0.3)
        async with asyncio.timeout(120):
            while await desk.published() < 2:  # noqa: ASYNC110 - another connection tells nobody
                await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert "The settings stay as they were. preferences.json cannot be used." in background.lines
        assert background._settings.background_interval_s == 0.06
        assert Presence(tmp_path).background_pid() is None

    play(tmp_path, scenario)
