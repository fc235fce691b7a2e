"""Notes, their vectors and their graph, together, as use cases want them."""

from datetime import UTC, datetime, timedelta

from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.note import Note, hash_content
from tests.memory.embedder import WordEmbedder
from tests.memory.knowledge import MemoryKnowledge
from tests.memory.manases import MemoryManases
from tests.memory.notes import MemoryNotes
from tests.memory.vectors import MemoryVectors


class MemoryLibrary:
    """Fakes of all ports around notes that share their notes."""

    def __init__(self) -> None:
        self.notes = MemoryNotes()
        self.vectors = MemoryVectors(self.notes)
        self.knowledge = MemoryKnowledge(self.notes)
        self.manases = MemoryManases(self.notes)
        self.embedder = WordEmbedder()

    async def write(self, note_id: str, title: str, text: str, *, embedded: bool = True) -> Note:
        """Saves a note; it is pending, and embedded unless told not to."""
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=self.notes.saves)
        note = Note(
            id=note_id,
            title=title,
            text=text,
            created_at=at,
            changed_at=at,
            content_hash=hash_content(title, text, ()),
        )
        await self.notes.save([note])
        if embedded:
            vector = await self.embedder.embed(f"{title} {text}")
            await self.vectors.store(note.id, note.content_hash, vector)
        return note

    async def read(self, note_id: str, summary: str, *relations: tuple[str, str, str]) -> None:
        """What a model would have said of it."""
        note = await self.notes.get(note_id)
        names = dict.fromkeys(name for source, _, target in relations for name in (source, target))
        said = Extraction(
            concepts=tuple(ConceptClaim(name=name) for name in names),
            relations=tuple(RelationClaim(source=s, verb=v, target=t) for s, v, t in relations),
            summary=summary,
        )
        await self.knowledge.assert_extraction(note_id, note.content_hash, said)
