"""Two machines on one PostgreSQL: apps as real processes with data folders of their own, and one queue of Ganas."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from data.repositories.ganas import SqlGanaRepository
from domain.entities.gana import GanaRun
from tests.background.desk import Desk
from tests.data.conftest import fresh_url
from tests.data.database.postgres import binaries

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "background" / "slow_program.py"
PATIENCE_S = 120
LEASE_S = "4"
SLOW, FAST = "1.0", "0.005"
"""Seconds a word, of a hundred."""
GANAS = 8


@contextmanager
def machine(data_dir: Path, url: str, word_s: str) -> Iterator[subprocess.Popen[str]]:
    """An app of its own; killed at the end."""
    data_dir.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "app", str(data_dir), word_s],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "UNIUN_DATABASE_URL": url,
            "LEASE_S": LEASE_S,
        },
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.05)


def play(tmp_path: Path, url: str, scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def with_desk() -> None:
        async with Desk(tmp_path, url=url) as desk:
            await scenario(desk)

    asyncio.run(with_desk())


if binaries() is not None:

    @pytest.fixture
    def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
        return fresh_url(request, tmp_path, "postgres")

    def test_two_machines_share_the_ganas_and_none_runs_twice(tmp_path: Path, shared: str) -> None:
        async def scenario(desk: Desk) -> None:
            for number in range(GANAS):
                await desk.gana(f"g{number}")

            async def all_published() -> bool:
                return await desk.published() >= GANAS

            with machine(tmp_path / "a", shared, FAST), machine(tmp_path / "b", shared, FAST):
                await until(all_published)
            runs = await desk.runs()
            assert sorted(run.gana_id for run in runs) == [f"id-g{number}" for number in range(GANAS)]
            assert {run.status for run in runs} == {"succeeded"}
            assert await desk.published() == GANAS

        play(tmp_path, shared, scenario)

    def test_the_tick_of_a_machine_that_is_lost_runs_on_another_when_its_lease_is_over(
        tmp_path: Path, shared: str
    ) -> None:
        async def scenario(desk: Desk) -> None:
            await desk.gana("g")

            async def published() -> bool:
                return await desk.published() > 0

            async def due() -> bool:
                return bool(await desk.due())

            async def claimed() -> bool:
                return any(run.status == "running" for run in await desk.runs())

            with machine(tmp_path / "a", shared, SLOW) as lost:
                await until(claimed)
                assert await desk.due() == []
                lost.kill()
            # Its lock file is on the lost machine's disk, so here only the lease tells.
            await until(due)
            with machine(tmp_path / "b", shared, FAST):
                await until(published)
            assert await desk.published() == 1

        play(tmp_path, shared, scenario)

    def test_a_machine_that_starts_leaves_the_runs_of_others_alone(tmp_path: Path, shared: str) -> None:
        async def scenario(desk: Desk) -> None:
            now = desk.clock.now()
            gana = await desk.gana("g")
            tick = await desk.ganas.claim(gana.id, gana.due_at, None, by="app", now=now)
            assert tick is not None
            run = GanaRun(
                id="r", gana_id=gana.id, due_at=gana.due_at, by="app", started_at=now, status="running"
            )
            await desk.ganas.put_run(run)
            other = SqlGanaRepository(desk.database, desk.identities)
            assert await other.settle_running(now, by="app") == 0
            assert await other.settle_running(now + timedelta(minutes=2), by="app") == 1

        play(tmp_path, shared, scenario)
