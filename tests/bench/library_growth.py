"""Import, search and retrieval over libraries of three sizes: what each costs, and how it grows."""

import random
import tempfile
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from sqlmodel import Session

from data.clock import Clock
from data.database.session import Database, sqlite_url
from data.embedding.minilm import DIMENSIONS
from data.identity import RandomIdentities
from data.importing.folder import FolderImporter
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from data.repositories.concept_merging import refresh
from data.repositories.graph import put_assertions
from data.repositories.knowledge import SqlKnowledgeRepository
from data.repositories.notes import SqlNoteRepository
from data.repositories.vectors import SqlVectorRepository
from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.usecases.retrieval import RetrieveContextUseCase
from domain.usecases.search import SearchNotesUseCase
from tests.bench.figures import Figure, Report, at_least, at_most, percentile, spread
from tests.bench.setting import Setting
from tests.memory.ganas import MemoryGanas
from tests.vaults import make_vault

SIZES, QUICK_SIZES = (500, 5_000, 50_000), (20, 40, 80)
"""The middle one has goals."""
QUESTIONS = 40
WORDS = ("river", "memory", "Straße", "winter", "history", "日記")
_BATCH = 500
BUDGET_TOKENS = 1_000


@dataclass
class _Library:
    """Seconds of one library."""

    notes: int
    import_s: float = 0.0
    again_s: float = 0.0
    waits: dict[str, list[float]] = field(default_factory=dict)


async def run(setting: Setting) -> Report:
    """Vectors are random, so no embedder is measured; a question's own embedding comes on top."""
    libraries = [await _measure(setting, size) for size in (QUICK_SIZES if setting.quick else SIZES)]
    small, middle, large = libraries
    figures = [
        Figure(f"import, {middle.notes:,} notes", middle.notes / middle.import_s, "notes/s", at_least(200)),
        Figure(f"import again, {middle.notes:,} notes", middle.notes / middle.again_s, "notes/s"),
    ]
    for name in middle.waits:
        wait_ms = 1000 * percentile(middle.waits[name], 95)
        figures.append(Figure(f"{name}, {middle.notes:,} notes, p95", wait_ms, "ms", at_most(50)))
        for less, more in ((small, middle), (middle, large)):
            growth = percentile(more.waits[name], 50) / percentile(less.waits[name], 50)
            figures.append(Figure(f"{name}, {more.notes:,} / {less.notes:,} notes, median", growth))
    for less, more in ((small, middle), (middle, large)):
        slower = (less.notes / less.import_s) / (more.notes / more.import_s)
        figures.append(Figure(f"import of a note, {more.notes:,} / {less.notes:,} notes", slower))
    raw = {
        str(library.notes): {
            "import_s": library.import_s,
            "import_again_s": library.again_s,
            **{name: spread(waits) for name, waits in library.waits.items()},
        }
        for library in libraries
    }
    return Report("library-growth", tuple(figures), raw)


async def _measure(setting: Setting, size: int) -> _Library:
    clock, library = setting.clock, _Library(size)
    with tempfile.TemporaryDirectory() as folder:
        make_vault(Path(folder) / "vault", size, odd=False)
        async with Database(sqlite_url(Path(folder) / "library.db")) as database:
            notes, vectors = SqlNoteRepository(database), SqlVectorRepository(database)
            importer = FolderImporter(
                notes, MarkdownNoteParser(), RandomIdentities(clock), LocalNoteChanges()
            )

            async def take() -> None:
                await importer.run(Path(folder) / "vault", lambda step: None)

            library.import_s = await _seconds(clock, take())
            library.again_s = await _seconds(clock, take())
            embedder = _RandomEmbedder()
            while waiting := await vectors.waiting(500):
                for note_id, content_hash, text in waiting:
                    await vectors.store(note_id, content_hash, await embedder.embed(text))
            await _fill_graph(database, await notes.note_ids(None))
            search = SearchNotesUseCase(notes, vectors, embedder)
            retrieve = RetrieveContextUseCase(
                embedder, vectors, notes, SqlKnowledgeRepository(database), MemoryGanas()
            )
            chance = random.Random(1)
            for _ in range(setting.count(QUESTIONS)):
                question = " ".join(chance.sample(WORDS, 2))
                asks: dict[str, Awaitable[object]] = {
                    "search by words": search(question),
                    "search by meaning": search(question, mode="meaning"),
                    "retrieval": retrieve(question, budget_tokens=BUDGET_TOKENS),
                }
                for name, asked in asks.items():
                    library.waits.setdefault(name, []).append(await _seconds(clock, asked))
    return library


async def _fill_graph(database: Database, note_ids: Sequence[str]) -> None:
    """Six concepts a note: a few that very many notes name, and many that few do, as in any library."""
    chance = random.Random(2)
    rare = [f"{chance.choice(WORDS)} {number}" for number in range(20 + len(note_ids) // 3)]

    def fill(session: Session, batch: Sequence[str]) -> None:
        touched: set[str] = set()
        for note_id in batch:
            common = [rare[min(len(rare) - 1, int(chance.paretovariate(0.5)))] for _ in range(4)]
            names = list(dict.fromkeys([*common, *chance.sample(rare, 2), chance.choice(WORDS)]))
            relations = tuple(
                RelationClaim(source=source, verb="leads to", target=target)
                for source, target in pairwise(names)
            )
            concepts = tuple(ConceptClaim(name=name) for name in names)
            summary = f"A note about {', '.join(names)}."
            extraction = Extraction(concepts=concepts, relations=relations, summary=summary)
            touched |= put_assertions(session, note_id, extraction)
        refresh(session, touched)

    for start in range(0, len(note_ids), _BATCH):
        batch = note_ids[start : start + _BATCH]
        await database.write(lambda session, batch=batch: fill(session, batch))  # type: ignore[misc]


class _RandomEmbedder:
    """Implements `Embedder`."""

    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._chance = np.random.default_rng(1)

    async def embed(self, text: str) -> Sequence[float]:
        vector = self._chance.standard_normal(DIMENSIONS)
        unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return unit


async def _seconds(clock: Clock, work: Awaitable[object]) -> float:
    start = clock.monotonic()
    await work
    return clock.monotonic() - start
