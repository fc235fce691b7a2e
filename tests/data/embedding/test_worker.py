"""The consumer of the durable queue, on the database."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.database.session import Database, sqlite_url
from data.embedding.queue import EmbeddingQueue
from data.embedding.worker import BATCH, CLAIMED, EmbeddingWorker, Waiting
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from domain.entities.note import Note, hash_content
from domain.errors import ModelUnavailable
from tests.memory.claims import MemoryClaims
from tests.memory.embedder import WordEmbedder
from tests.memory.library import MemoryLibrary
from tests.memory.notes import MemoryNotes
from tests.memory.vectors import MemoryVectors

LIMIT_S = 240


class LaneEmbedder(WordEmbedder):
    """Through a real lane of two that refuses a second in line; counts what runs at once, tells when so many ran."""

    def __init__(self, tell_after: int = 0) -> None:
        super().__init__()
        self.lane = EmbeddingQueue(2, max_waiting=1)
        self.most = 0
        self.told = asyncio.Event()
        self._tell_after = tell_after

    async def embed(self, text: str) -> Sequence[float]:
        return await self.lane.run(lambda: self._embed(text))

    async def _embed(self, text: str) -> Sequence[float]:
        self.most = max(self.most, self.lane.running)
        await asyncio.sleep(0)
        if len(self.asked) >= self._tell_after:
            self.told.set()
        return await super().embed(text)


class WatchedVectors(SqlVectorRepository):
    """Tells when it was asked and nothing waited."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.idle = asyncio.Event()

    async def waiting(
        self, limit: int, *, others_too: bool = False, oldest: bool = False
    ) -> tuple[Waiting, ...]:
        found = await super().waiting(limit, others_too=others_too, oldest=oldest)
        if not found:
            self.idle.set()
        return found


def note(number: int, text: str) -> Note:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    title = f"note {number}"
    return Note(
        id=f"{number:06}",
        title=title,
        text=text,
        created_at=at,
        changed_at=at,
        content_hash=hash_content(title, text, ()),
    )


@asynccontextmanager
async def repositories(folder: Path) -> AsyncIterator[tuple[SqlNoteRepository, WatchedVectors]]:
    async with Database(sqlite_url(folder / "test.db")) as database:
        yield SqlNoteRepository(database), WatchedVectors(database)


@asynccontextmanager
async def running(worker: EmbeddingWorker) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def until_idle(worker: EmbeddingWorker, vectors: WatchedVectors) -> None:
    async with asyncio.timeout(LIMIT_S):
        while await vectors.waiting_count():
            vectors.idle.clear()
            worker.wake()
            await vectors.idle.wait()


def test_a_flood_is_absorbed(tmp_path: Path) -> None:
    """1,000 notes, written as fast as can be, some again while they wait or are worked on."""

    async def flood() -> None:
        chance = random.Random(1)
        embedder = LaneEmbedder()
        async with repositories(tmp_path) as (notes, vectors):
            worker = EmbeddingWorker(vectors, nullcontext(embedder), MemoryClaims())
            async with running(worker):
                for first in range(0, 1_000, 50):
                    batch = [note(number, f"first {number}") for number in range(first, first + 50)]
                    again = chance.randrange(first + 50)
                    await notes.save(batch)
                    await notes.save([note(again, f"again {again}")])
                    worker.wake()
                    assert embedder.lane.waiting <= 1
                await until_idle(worker, vectors)
            assert embedder.most == 1  # the other place is for who searches meanwhile
            for number in chance.sample(range(1_000), 20):
                [current] = await notes.many([f"{number:06}"])
                wanted = await WordEmbedder().embed(f"{current.title}\n{current.text}")
                best = await vectors.nearest(wanted, limit=1_000)
                assert dict(best)[current.id] > 0.95

    asyncio.run(flood())


def test_every_note_is_counted(tmp_path: Path) -> None:
    async def work_off() -> None:
        async with repositories(tmp_path) as (notes, vectors):
            await notes.save([note(number, f"text {number}") for number in range(40)])
            told: list[int] = []
            worker = EmbeddingWorker(vectors, nullcontext(WordEmbedder()), MemoryClaims())
            assert await worker.work_off(told.append) == 40
            assert told[-1] == 40

    asyncio.run(work_off())


def test_killed_at_any_moment_nothing_is_lost(tmp_path: Path) -> None:
    async def kill() -> None:
        chance = random.Random(2)
        async with repositories(tmp_path) as (notes, vectors):
            await notes.save([note(number, f"text {number}") for number in range(200)])
            while left := await vectors.waiting_count():
                embedder = LaneEmbedder(tell_after=chance.randrange(30))
                task = asyncio.create_task(
                    EmbeddingWorker(vectors, nullcontext(embedder), MemoryClaims()).run()
                )
                async with asyncio.timeout(LIMIT_S):
                    await asyncio.wait(
                        [
                            task,
                            asyncio.ensure_future(embedder.told.wait()),
                            asyncio.ensure_future(vectors.idle.wait()),
                        ],
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                assert left - 30 - BATCH <= await vectors.waiting_count() <= left

    asyncio.run(kill())


def test_it_wakes_when_notes_are_saved(tmp_path: Path) -> None:
    async def wake() -> None:
        async with repositories(tmp_path) as (notes, vectors):
            worker = EmbeddingWorker(vectors, nullcontext(WordEmbedder()), MemoryClaims())
            async with running(worker):
                for number in range(3):
                    await notes.save([note(number, "text")])
                    worker.wake()
                    await until_idle(worker, vectors)

    asyncio.run(wake())


class MendedEmbedder(WordEmbedder):
    """Is there at the third attempt."""

    async def embed(self, text: str) -> Sequence[float]:
        self.error = ModelUnavailable("No network.") if len(self.asked) < 2 else None
        return await super().embed(text)


class ToldVectors(MemoryVectors):
    """What the worker says of itself when it asks, and when nothing waits any more."""

    def __init__(self, notes: MemoryNotes) -> None:
        super().__init__(notes)
        self.idle = asyncio.Event()
        self.worker: EmbeddingWorker | None = None
        self.errors: list[str | None] = []

    async def waiting(
        self, limit: int, *, others_too: bool = False, oldest: bool = False
    ) -> tuple[Waiting, ...]:
        if self.worker is not None:
            self.errors.append(self.worker.error)
        found = await super().waiting(limit, others_too=others_too, oldest=oldest)
        if not found:
            self.idle.set()
        return found


def test_a_missing_embedder_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def miss() -> None:
        monkeypatch.setattr("data.embedding.worker.PAUSE_S", 0.0)
        library = MemoryLibrary()
        await library.write("a", "A", "text", embedded=False)
        vectors = ToldVectors(library.notes)
        worker = vectors.worker = EmbeddingWorker(vectors, nullcontext(MendedEmbedder()), MemoryClaims())
        async with running(worker):
            async with asyncio.timeout(LIMIT_S):
                await vectors.idle.wait()
            assert vectors.errors[:3] == [None, "No network.", "No network."]
            assert worker.error is None

    asyncio.run(miss())


def test_working_off_tells_how_far_it_is() -> None:
    async def work() -> None:
        library = MemoryLibrary()
        for number in range(BATCH + 10):
            await library.write(f"{number}", f"N {number}", "text", embedded=False)
        steps: list[int] = []
        worker = EmbeddingWorker(library.vectors, nullcontext(library.embedder), MemoryClaims())
        assert await worker.work_off(steps.append) == BATCH + 10
        assert steps == list(range(1, BATCH + 11))
        assert await worker.work_off() == 0

    asyncio.run(work())


class ClaimedEmbedder(WordEmbedder):
    """How many notes are claimed while one is embedded."""

    def __init__(self, claims: MemoryClaims) -> None:
        super().__init__()
        self.claims = claims
        self.held: set[int] = set()

    async def embed(self, text: str) -> Sequence[float]:
        self.held.add(len(self.claims.held))
        return await super().embed(text)


def test_few_notes_are_claimed_at_a_time() -> None:
    """Who waits for all of them makes those a second time."""

    async def work() -> None:
        library, claims = MemoryLibrary(), MemoryClaims()
        for number in range(3 * CLAIMED + 1):
            await library.write(f"{number}", f"N {number}", "text", embedded=False)
        embedder = ClaimedEmbedder(claims)
        await EmbeddingWorker(library.vectors, nullcontext(embedder), claims).work_off()
        assert embedder.held == {CLAIMED, 1}

    asyncio.run(work())


class FloodedEmbedder(WordEmbedder):
    """While a note is embedded another one is written."""

    def __init__(self, library: MemoryLibrary) -> None:
        super().__init__()
        self.library = library
        self.texts: list[str] = []

    async def embed(self, text: str) -> Sequence[float]:
        self.texts.append(text)
        if len(self.texts) < 6 * BATCH:
            name = f"new {len(self.texts)}"
            await self.library.write(name, name, "text", embedded=False)
        return await super().embed(text)


def test_a_note_does_not_wait_for_ever_while_others_are_written() -> None:
    async def work() -> None:
        library = MemoryLibrary()
        for number in range(BATCH + 1):
            await library.write(f"{number}", f"N {number}", "text", embedded=False)
        embedder = FloodedEmbedder(library)
        await EmbeddingWorker(library.vectors, nullcontext(embedder), MemoryClaims()).work_off()
        assert embedder.texts.index("N 0\ntext") == 3 * BATCH

    asyncio.run(work())
