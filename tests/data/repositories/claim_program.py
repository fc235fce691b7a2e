"""A process that shares work with others: `claim_program.py URL DATA_DIR NAME [hold]`. It reads and embeds what waits, and
says what; with `hold` it begins to read the first two notes and never ends."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from data.clock import SystemClock
from data.database.session import Database
from data.embedding.worker import EmbeddingWorker
from data.gana.holders import ClaimHolders
from data.identity import RandomIdentities
from data.knowledge.backfill import Backfill
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from data.repositories.work_claims import SqlWorkClaims
from domain.entities.llm import GenerationRequest
from domain.usecases.knowledge import ExtractKnowledgeUseCase
from domain.usecases.llm import GenerateOneShotUseCase
from tests.fakes import HOLD, MemoryStore, ScriptedCoordinator, ScriptedJob, answer
from tests.memory.embedder import WordEmbedder

SAID = answer(json.dumps({"summary": "S.", "concepts": [], "relations": []}))


class Machine:
    """A reader and an embedder over one database, as an app has them; `tell` hears of each piece of work as it begins."""

    def __init__(
        self,
        database: Database,
        holders: ClaimHolders | None = None,
        *,
        tell: Callable[[str], None] = lambda work: None,
        hold: bool = False,
    ) -> None:
        clock = SystemClock()
        self.tell = tell
        self.claims = SqlWorkClaims(database, RandomIdentities(clock), holders)
        self.knowledge = SqlKnowledgeRepository(database, self.claims)
        self.vectors = SqlVectorRepository(database, self.claims)
        store = MemoryStore("tiny")
        self.extract = ExtractKnowledgeUseCase(
            GenerateOneShotUseCase(_Told(self, hold), store),
            store,
            SqlNoteRepository(database),
            self.knowledge,
            self.claims,
        )
        self.backfill = Backfill(self.extract, self.knowledge, clock)
        self.worker = EmbeddingWorker(self.vectors, nullcontext(_ToldEmbedder(tell)), self.claims)

    async def work(self, done: Callable[[], Awaitable[bool]]) -> None:
        """Until `done`."""
        tasks = [asyncio.create_task(self.backfill.run()), asyncio.create_task(self.worker.run())]
        while not await done():
            finished, _ = await asyncio.wait(tasks, timeout=0.02)
            for task in finished:
                task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def nothing_waits(self) -> bool:
        return (
            not (await self.knowledge.pending_counts())["waiting"] and not await self.vectors.waiting_count()
        )


class _Told(ScriptedCoordinator):
    def __init__(self, machine: Machine, hold: bool) -> None:
        super().__init__([HOLD] if hold else SAID)
        self._machine = machine

    def submit(self, request: GenerationRequest) -> ScriptedJob:
        self._machine.tell(f"read {request.flow}")
        return super().submit(request)


class _ToldEmbedder(WordEmbedder):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    async def embed(self, text: str) -> Sequence[float]:
        self._tell(f"embed {text.splitlines()[0]}")
        return await super().embed(text)


async def main(url: str, data_dir: str, hold: bool) -> None:
    def tell(work: str) -> None:
        sys.stdout.write(f"{work}\n")
        sys.stdout.flush()

    async def never() -> bool:
        return False

    async with Database(url) as database:
        machine = Machine(database, ClaimHolders(Path(data_dir)), tell=tell, hold=hold)
        tell("open")
        sys.stdin.readline()
        if hold:
            await machine.backfill.run()
        await machine.work(machine.nothing_waits)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], "hold" in sys.argv[3:]))
