"""App and background process as real processes that end in every way, with claims, locks and signals as they are."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from data.presence import Presence
from data.repositories.ganas import LEASE_S
from tests.background.desk import Desk

PROGRAM = Path(__file__).with_name("slow_program.py")
ROOT = PROGRAM.parents[2]
PATIENCE_S = 240
"""For a machine that does much else at the same time."""
SLOW, FAST = "1.0", "0.0"
"""Seconds a word: a run that is to be cut off, and one that is to end."""


@contextmanager
def started(mode: str, data_dir: Path, word_s: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), mode, str(data_dir), word_s],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.05)


async def running(desk: Desk) -> bool:
    return any(run.status == "running" for run in await desk.runs())


async def published(desk: Desk) -> bool:
    return await desk.published() > 0


def play(tmp_path: Path, scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def with_desk() -> None:
        async with Desk(tmp_path) as desk:
            await scenario(desk)

    asyncio.run(with_desk())


def test_the_app_opens_in_the_middle_of_a_run_and_takes_the_tick_over(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.gana("g")
        with started("background", tmp_path, SLOW):
            await until(lambda: running(desk))
            with started("app", tmp_path, FAST):
                await until(lambda: published(desk))
        assert await desk.published() == 1
        ends = [(run.by, run.status, run.reason) for run in await desk.runs()]
        assert ends == [("background", "skipped", "cancelled"), ("app", "succeeded", None)]

    play(tmp_path, scenario)


def test_the_app_is_killed_and_the_background_goes_on(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        presence = Presence(tmp_path)
        with started("background", tmp_path, FAST), started("app", tmp_path, SLOW) as app:
            assert presence.app_is_open()
            await desk.gana("g", due_in_s=0)
            await until(lambda: running(desk))
            app.kill()
            app.wait(PATIENCE_S)
            assert not presence.app_is_open()
            killed_at = desk.clock.monotonic()
            await until(lambda: published(desk))
            assert desk.clock.monotonic() - killed_at < LEASE_S
        assert await desk.published() == 1
        assert {run.by for run in await desk.runs() if run.status == "succeeded"} == {"background"}

    play(tmp_path, scenario)


def test_the_background_is_killed_and_the_app_goes_on(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.gana("g")
        with started("background", tmp_path, SLOW) as background:
            await until(lambda: running(desk))
            assert Presence(tmp_path).background_pid() == background.pid
            background.kill()
            background.wait(PATIENCE_S)
        assert Presence(tmp_path).background_pid() is None
        assert await desk.due() == ["g"], "a dead holder's claim is over at once"
        with started("app", tmp_path, FAST):
            await until(lambda: published(desk))
        assert await desk.published() == 1

    play(tmp_path, scenario)


def test_sigterm_in_the_middle_of_a_run_is_clean(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.gana("g")
        with started("background", tmp_path, SLOW) as background:
            await until(lambda: running(desk))
            background.send_signal(signal.SIGTERM)
            out, _ = background.communicate(timeout=PATIENCE_S)
            assert background.returncode == 0
            assert out.splitlines()[-1] == "ended"
        assert await desk.due() == ["g"]
        assert await desk.published() == 0

    play(tmp_path, scenario)
