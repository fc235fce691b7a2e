"""A chat while notes pour in and are embedded, or a folder is imported, against the same chat without them, in turns."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from data.database.session import Database, sqlite_url
from data.embedding.backlog import BacklogEmbedder
from data.embedding.queue import EmbeddingQueue
from data.embedding.weights import EmbedderWeights
from data.embedding.worker import EmbeddingWorker
from data.identity import RandomIdentities
from data.importing.folder import FolderImporter
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from data.repositories.work_claims import SqlWorkClaims
from data.rest import Rest
from domain.entities.note import NoteDraft
from domain.usecases.notes import ComposeNote
from tests.bench import prompts
from tests.bench.figures import Figure, Report, at_least, at_most, median, spread
from tests.bench.setting import Setting, Timing, timed

NOTES_PER_S = 200
TOKENS = 60
FILES = 2_000
"""Of an imported folder: more than are read during an answer."""
STORE = Path(__file__).resolve().parents[2] / "build" / "test-store"


async def run(setting: Setting) -> Report:
    """Tokens a second of an answer, its first token left out, with and without the flood."""
    alone: list[Timing] = []
    flooded: list[Timing] = []
    beside: dict[bool, list[Timing]] = {True: [], False: []}
    """Beside an import that lets an answer go first, and beside one that does not."""
    model = setting.model.name
    weights = EmbedderWeights(STORE)
    await weights.ensure()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Database(sqlite_url(Path(folder) / "flood.db")) as database,
            setting.dispatcher() as (dispatcher, _),
        ):
            rest = Rest(lambda: dispatcher.somebody_waits, setting.clock)
            flood = _Flood(setting, database, weights, rest)
            await timed(setting.clock, dispatcher, prompts.chat(model, 99_999, max_tokens=TOKENS))
            for pair in range(setting.count(10)):
                alone.append(
                    await timed(setting.clock, dispatcher, prompts.chat(model, 10 * pair, max_tokens=TOKENS))
                )
                async with flood.running():
                    await asyncio.sleep(0.1 if setting.quick else 1.0)
                    request = prompts.chat(model, 10 * pair + 5, max_tokens=TOKENS)
                    flooded.append(await timed(setting.clock, dispatcher, request))
                for polite, found in beside.items():
                    async with _importing(
                        Path(folder) / f"{pair}-{polite}", rest if polite else None, setting
                    ):
                        request = prompts.chat(model, 10 * pair + 7, max_tokens=TOKENS)
                        found.append(await timed(setting.clock, dispatcher, request))
            vectors_per_s = await flood.drain(0.5 if setting.quick else 10.0)
    imported = {polite: [_rate(timing) for timing in found] for polite, found in beside.items()}
    before, under = [_rate(timing) for timing in alone], [_rate(timing) for timing in flooded]
    figures = (
        Figure(
            "chat, tokens a second, flooded / alone, median",
            median(under) / median(before),
            goal=at_least(0.9),
        ),
        Figure(
            "notes saved a second during it",
            flood.saved / flood.seconds,
            "notes/s",
            at_least(0.9 * NOTES_PER_S),
        ),
        Figure(
            "chat, tokens a second, beside an import / alone, median",
            median(imported[True]) / median(before),
            goal=at_least(0.9),
        ),
        Figure("the same, if no answer went first", median(imported[False]) / median(before)),
        Figure("notes lost", flood.lost, "notes", at_most(0)),
        Figure("vectors a second, once the chat is over", vectors_per_s, "notes/s"),
    )
    raw = {
        "alone_tokens_per_s": spread(before),
        "flooded_tokens_per_s": spread(under),
        "beside_an_import_tokens_per_s": spread(imported[True]),
        "embedded_meanwhile": flood.saved - flood.left,
    }
    return Report("note-flood", figures, raw)


def _rate(timing: Timing) -> float:
    return (timing.result.usage.completion_tokens - 1) / (timing.last_token_s - timing.first_token_s)


class _Flood:
    """Notes written at a steady rate into a real database, and a real worker that embeds them."""

    def __init__(self, setting: Setting, database: Database, weights: EmbedderWeights, rest: Rest) -> None:
        self._clock = setting.clock
        self._notes = SqlNoteRepository(database)
        identities = RandomIdentities(setting.clock)
        claims = SqlWorkClaims(database, identities)
        self._vectors = SqlVectorRepository(database, claims)
        self._compose = ComposeNote(MarkdownNoteParser(), identities)
        self._worker = EmbeddingWorker(
            self._vectors, BacklogEmbedder(weights, EmbeddingQueue()), claims, rest
        )
        self.saved = self.left = self.lost = 0
        self.seconds = 0.0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Writing and embedding go on until it is left."""
        start = self._clock.monotonic()
        tasks = [asyncio.create_task(work) for work in (self._write(), self._worker.run())]
        try:
            yield
        finally:
            self.seconds += self._clock.monotonic() - start
            await _end(tasks)

    async def drain(self, seconds: float) -> float:
        """Vectors a second of so long a look at the worker when nothing else goes on."""
        self.lost = self.saved - await self._notes.count()
        self.left = await self._vectors.waiting_count()
        start = self._clock.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._worker.work_off()
        took = self._clock.monotonic() - start
        return (self.left - await self._vectors.waiting_count()) / took

    async def _write(self) -> None:
        """Ten notes at a time. One that is being saved while it is cancelled is saved all the same, and counted."""
        start, first = self._clock.monotonic(), self.saved
        while True:
            batch = [
                self._compose(NoteDraft(text=f"# Note {n}\n\n{prompts.note(n, 6)}"))
                for n in range(self.saved, self.saved + 10)
            ]
            self.saved += len(batch)
            await asyncio.shield(self._notes.save(batch))
            self._worker.wake()
            due = start + (self.saved - first) / NOTES_PER_S
            await asyncio.sleep(max(0.0, due - self._clock.monotonic()))


@contextlib.asynccontextmanager
async def _importing(folder: Path, rest: Rest | None, setting: Setting) -> AsyncIterator[None]:
    """Into a database of its own; has begun when entered, and goes on until it is left."""
    await asyncio.to_thread(_write_files, folder)
    begun = asyncio.Event()
    async with Database(sqlite_url(folder / "imported.db")) as database:
        importer = FolderImporter(
            SqlNoteRepository(database),
            MarkdownNoteParser(),
            RandomIdentities(setting.clock),
            LocalNoteChanges(),
            rest,
        )
        task = asyncio.create_task(importer.run(folder, lambda step: begun.set()))
        await begun.wait()
        try:
            yield
        finally:
            await _end([task])


def _write_files(folder: Path) -> None:
    folder.mkdir()
    for n in range(FILES):
        (folder / f"{n}.md").write_text(f"# {folder.name} {n}\n\n{prompts.note(n, 6)}", encoding="utf-8")


async def _end(tasks: "list[asyncio.Task[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
