"""No two processes on one database read or embed the same note; the work of one that died is done by another."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlmodel import Session, col, select

from data.clock import SystemClock
from data.database.session import Database
from data.database.tables.claims import WorkClaimRow
from data.embedding.worker import EmbeddingWorker
from data.gana.holders import ClaimHolders
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from data.repositories.work_claims import LEASE_S, SqlWorkClaims
from tests.data.repositories.claim_program import Machine
from tests.data.repositories.conftest import Run
from tests.data.repositories.samples import note
from tests.memory.embedder import WordEmbedder
from tests.memory.identity import CountingIdentities

ROOT = Path(__file__).parents[3]
PATIENCE_S = 120
MANY = 80
"""More than a batch of the embedder."""


class Wall(CountingIdentities):
    """A wall clock that stands still, and names that differ from process to process."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.step = timedelta(0)
        self._name = name

    def new_id(self) -> str:
        return f"{self._name}-{super().new_id()}"

    def pass_by(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Two:
    """Two processes, and a list of three notes."""

    def __init__(self, database: Database, renewal_s: float = LEASE_S) -> None:
        self.database = database
        self.walls = Wall("a"), Wall("b")
        self.ours, self.theirs = (SqlWorkClaims(database, wall, renewal_s=renewal_s) for wall in self.walls)
        self.notes = SqlNoteRepository(database)

    def pass_by(self, seconds: float) -> None:
        for wall in self.walls:
            wall.pass_by(seconds)

    async def save(self) -> None:
        await self.notes.save([note("n1"), note("n2"), note("n3")])

    async def pending(self, claims: SqlWorkClaims) -> list[str]:
        return [one.note_id for one in await SqlKnowledgeRepository(self.database, claims).pending(9)]

    async def rows(self) -> list[tuple[str, datetime]]:
        def read(session: Session) -> list[tuple[str, datetime]]:
            rows = session.exec(select(WorkClaimRow).order_by(col(WorkClaimRow.subject))).all()
            return [(row.subject, row.until) for row in rows]

        return await self.database.read(read)


def test_who_waits_for_the_vectors_does_not_wait_for_another_process(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        vectors = SqlVectorRepository(database, two.ours)
        done: list[int] = []
        worker = EmbeddingWorker(vectors, nullcontext(WordEmbedder()), two.ours)
        async with two.theirs.hold("embed", ["n1", "n2"]):
            assert [note_id for note_id, _, _ in await vectors.waiting(9)] == ["n3"]
            assert await worker.work_off(done.append) == 3
            assert await vectors.waiting_count() == 0
        assert done == [1, 2, 3]

    run(scenario)


def test_what_one_process_has_another_neither_gets_nor_sees(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        async with two.ours.hold("read", ["n1", "n2", "n1", "none such"]) as ours:
            assert ours == {"n1", "n2"}
            assert await two.pending(two.theirs) == ["n3"]
            assert await two.pending(two.ours) == ["n1", "n2", "n3"]
            async with two.theirs.hold("read", ["n2", "n3"]) as theirs:
                assert theirs == {"n3"}
            async with two.theirs.hold("embed", ["n1"]) as other_work:
                assert other_work == {"n1"}
            async with two.ours.hold("deck", ["all"]) as deck, two.theirs.hold("deck", ["all"]) as none:
                assert deck == {"all"}
                assert not none
        assert await two.pending(two.theirs) == ["n1", "n2", "n3"]
        assert await two.rows() == []

    run(scenario)


def test_callers_of_one_process_share_a_claim_until_the_last_has_done(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        async with two.ours.hold("read", ["n1"]):
            async with two.ours.hold("read", ["n1", "n2"]) as shared:
                assert shared == {"n1", "n2"}
            async with two.theirs.hold("read", ["n1", "n2"]) as theirs:
                assert theirs == {"n2"}
        assert await two.rows() == []

    run(scenario)


def test_a_claim_without_a_sign_of_life_lapses(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        async with two.ours.hold("read", ["n1"]):
            two.pass_by(LEASE_S - 1)
            assert await two.pending(two.theirs) == ["n2", "n3"]
            two.pass_by(1)
            assert await two.pending(two.theirs) == ["n1", "n2", "n3"]
            async with two.theirs.hold("read", ["n1"]) as theirs:
                assert theirs == {"n1"}
                assert await two.pending(two.ours) == ["n2", "n3"]
        assert await two.rows() == []

    run(scenario)


def test_a_claim_is_renewed_while_its_work_goes_on(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database, renewal_s=0)
        await two.save()
        async with two.ours.hold("read", ["n1"]):
            two.pass_by(LEASE_S - 1)
            renewed = two.walls[0].at + timedelta(seconds=LEASE_S)
            async with asyncio.timeout(PATIENCE_S):
                while await two.rows() != [("n1", renewed)]:
                    pass
            two.pass_by(LEASE_S - 1)
            async with two.theirs.hold("read", ["n1"]) as theirs:
                assert not theirs

    run(scenario)


def test_a_claim_from_before_the_clock_was_set_back_says_nothing(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        async with two.ours.hold("read", ["n1"]):
            two.pass_by(-3600)
            assert await two.pending(two.theirs) == ["n1", "n2", "n3"]
            async with two.theirs.hold("read", ["n1"]) as theirs:
                assert theirs == {"n1"}

    run(scenario)


@pytest.mark.parametrize("behind_s", [1, LEASE_S - 20])
def test_the_clocks_of_two_machines_may_differ(run: Run, behind_s: float) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        two.walls[1].pass_by(-behind_s)
        async with two.ours.hold("read", ["n1"]), two.theirs.hold("read", ["n1", "n2"]) as theirs:
            assert theirs == {"n2"}
            assert await two.pending(two.theirs) == ["n2", "n3"]
            assert await two.pending(two.ours) == ["n1", "n3"]

    run(scenario)


def test_work_that_is_cancelled_gives_its_claim_back(run: Run) -> None:
    async def scenario(database: Database) -> None:
        two = Two(database)
        await two.save()
        begun = asyncio.Event()

        async def work() -> None:
            async with two.ours.hold("read", ["n1"]):
                begun.set()
                await asyncio.Event().wait()

        for cancelled_at_once in (False, True):
            begun.clear()
            task = asyncio.create_task(work())
            await (asyncio.sleep(0) if cancelled_at_once else begun.wait())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await two.rows() == []

    run(scenario)


def test_two_repositories_that_race_do_everything_once(run: Run, url: str) -> None:
    async def scenario(database: Database) -> None:
        await SqlNoteRepository(database).save([note(f"n{number}") for number in range(MANY)])
        done: list[str] = []
        async with Database(url) as other:
            one, two = Machine(database, tell=done.append), Machine(other, tell=done.append)
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(one.work(one.nothing_waits), two.work(two.nothing_waits))
        assert set(Counter(done).values()) == {1}
        assert len(done) == 2 * MANY

    run(scenario)


@contextmanager
def process(url: str, data_dir: Path, *mode: str) -> Iterator[subprocess.Popen[str]]:
    """Opened, and waiting for a line; killed at the end."""
    data_dir.mkdir(exist_ok=True)
    program = [sys.executable, "-m", "tests.data.repositories.claim_program", url, str(data_dir), *mode]
    with subprocess.Popen(
        program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "open\n"
            yield running
        finally:
            running.kill()


def go(running: subprocess.Popen[str]) -> None:
    assert running.stdin is not None
    running.stdin.write("\n")
    running.stdin.flush()


@pytest.mark.parametrize("folders", [("one", "one"), ("one", "two")])
def test_processes_that_race_do_everything_once(
    run: Run, url: str, tmp_path: Path, folders: tuple[str, str]
) -> None:
    """Of one data folder, and of two as on two machines."""

    async def write(database: Database) -> None:
        await SqlNoteRepository(database).save([note(f"n{number}") for number in range(MANY)])

    run(write)
    with process(url, tmp_path / folders[0]) as one, process(url, tmp_path / folders[1]) as two:
        go(one)
        go(two)
        said = [running.communicate(timeout=PATIENCE_S)[0].splitlines() for running in (one, two)]
    everything = [*said[0], *said[1]]
    assert set(Counter(everything).values()) == {1}
    assert len(everything) == 2 * MANY


@pytest.mark.parametrize("same_folder", [True, False])
def test_what_a_killed_process_was_reading_is_read_by_another(
    run: Run, url: str, tmp_path: Path, same_folder: bool
) -> None:
    """At once on its own machine, where the kernel knows that it died; elsewhere when its lease is over."""

    async def scenario(database: Database) -> None:
        await SqlNoteRepository(database).save([note("n1"), note("n2"), note("n3")])
        with process(url, tmp_path / "killed", "hold") as killed:
            go(killed)
            assert killed.stdout is not None
            assert {killed.stdout.readline() for _ in range(2)} == {"read n1\n", "read n2\n"}
            wall = Wall("here")
            wall.at = SystemClock().now()
            holders = ClaimHolders(tmp_path / ("killed" if same_folder else "here"))
            knowledge = SqlKnowledgeRepository(database, SqlWorkClaims(database, wall, holders))

            async def pending() -> list[str]:
                return [one.note_id for one in await knowledge.pending(9)]

            assert await pending() == ["n3"]
            killed.kill()
            killed.wait()
            if not same_folder:
                assert await pending() == ["n3"]
                wall.pass_by(LEASE_S)
            assert await pending() == ["n1", "n2", "n3"]

    run(scenario)
