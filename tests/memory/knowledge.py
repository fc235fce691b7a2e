"""The knowledge graph in dictionaries, merged by name without case."""

from collections.abc import Sequence
from datetime import UTC, datetime

from domain.entities.knowledge import (
    Concept,
    Extraction,
    Neighbourhood,
    PendingExtraction,
    Relation,
)


class MemoryKnowledge:
    """Implements `KnowledgeRepository`. `queue` is what a database does when a note is saved."""

    def __init__(self) -> None:
        self._pending: dict[str, PendingExtraction] = {}
        self._read: dict[str, Extraction] = {}
        self._hashes: dict[str, str] = {}

    def queue(self, note_id: str, content_hash: str) -> None:
        """The note is new or has changed."""
        self._hashes[note_id] = content_hash
        self._pending[note_id] = PendingExtraction(
            note_id=note_id,
            content_hash=content_hash,
            state="waiting",
            attempts=0,
            error=None,
            queued_at=datetime(2026, 1, 1, 0, 0, len(self._pending) % 60, tzinfo=UTC),
        )

    def forget(self, note_id: str) -> None:
        """The note was deleted."""
        for kept in (self._pending, self._read, self._hashes):
            kept.pop(note_id, None)

    async def pending(self, limit: int) -> tuple[PendingExtraction, ...]:
        return tuple(p for p in self._pending.values() if p.state == "waiting")[:limit]

    async def pending_counts(self) -> dict[str, int]:
        states = [pending.state for pending in self._pending.values()]
        return {"waiting": states.count("waiting"), "failed": states.count("failed")}

    async def pending_of(self, note_id: str) -> PendingExtraction | None:
        return self._pending.get(note_id)

    async def failures(self, limit: int = 100) -> tuple[PendingExtraction, ...]:
        return tuple(p for p in reversed(self._pending.values()) if p.state == "failed")[:limit]

    async def retry(self, note_ids: Sequence[str] | None = None) -> int:
        failed = [p for p in self._pending.values() if p.state == "failed"]
        chosen = [p for p in failed if note_ids is None or p.note_id in note_ids]
        for pending in chosen:
            self._pending[pending.note_id] = pending.model_copy(
                update={"state": "waiting", "attempts": 0, "error": None}
            )
        return len(chosen)

    async def assert_extraction(self, note_id: str, content_hash: str, extraction: Extraction) -> bool:
        if self._hashes.get(note_id) != content_hash:
            return False
        self._read[note_id] = extraction
        self._pending.pop(note_id, None)
        return True

    async def fail(self, note_id: str, content_hash: str, error: str, *, give_up_after: int) -> None:
        pending = self._pending.get(note_id)
        if pending is None or pending.content_hash != content_hash:
            return
        attempts = pending.attempts + 1
        state = "failed" if attempts >= give_up_after else "waiting"
        self._pending[note_id] = pending.model_copy(
            update={"attempts": attempts, "state": state, "error": error}
        )

    async def summary(self, note_id: str) -> str | None:
        return self._read[note_id].summary if note_id in self._read else None

    async def concepts_of(self, note_ids: Sequence[str]) -> tuple[Concept, ...]:
        named = {
            claim.name.casefold()
            for note_id in note_ids
            if note_id in self._read
            for claim in self._read[note_id].concepts
        }
        return tuple(concept for concept in self._concepts() if concept.id in named)

    async def notes_naming(self, concept_ids: Sequence[str], limit: int) -> tuple[str, ...]:
        counted = {
            note_id: sum(claim.name.casefold() in concept_ids for claim in read.concepts)
            for note_id, read in self._read.items()
        }
        naming = sorted((note_id for note_id, n in counted.items() if n), key=lambda n: (-counted[n], n))
        return tuple(naming[:limit])

    async def neighbours(
        self, concept_ids: Sequence[str], *, hops: int = 1, limit: int = 50
    ) -> Neighbourhood:
        reached = set(concept_ids)
        for _ in range(min(hops, 2)):
            reached |= {
                end
                for relation in self._relations()
                for end in (relation.source.id, relation.target.id)
                if {relation.source.id, relation.target.id} & reached
            }
        return self._within(reached, limit)

    async def find_concepts(self, text: str, limit: int = 20) -> tuple[Concept, ...]:
        wanted = text.casefold()
        return tuple(c for c in self._concepts() if wanted in c.name.casefold())[:limit]

    async def graph(self, *, manas_id: str | None = None, limit: int = 500) -> Neighbourhood:
        return self._within({concept.id for concept in self._concepts()}, limit)

    def _within(self, ids: set[str], limit: int) -> Neighbourhood:
        concepts = tuple(c for c in self._concepts() if c.id in ids)[:limit]
        shown = {concept.id for concept in concepts}
        relations = tuple(r for r in self._relations() if r.source.id in shown and r.target.id in shown)
        return Neighbourhood(concepts=concepts, relations=relations)

    def _concepts(self) -> tuple[Concept, ...]:
        found: dict[str, Concept] = {}
        for read in self._read.values():
            for name, claim in {claim.name.casefold(): claim for claim in read.concepts}.items():
                known = found.get(name) or Concept(id=name, name=claim.name, type=claim.type)
                found[name] = known.model_copy(update={"note_count": known.note_count + 1})
        return tuple(sorted(found.values(), key=lambda c: (-c.note_count, c.name)))

    def _relations(self) -> tuple[Relation, ...]:
        concepts = {concept.id: concept for concept in self._concepts()}
        found: dict[tuple[str, str, str], list[str]] = {}
        for note_id, read in self._read.items():
            for claim in read.relations:
                key = (claim.source.casefold(), claim.verb.casefold(), claim.target.casefold())
                if key[0] in concepts and key[2] in concepts:
                    found.setdefault(key, []).append(note_id)
        return tuple(
            Relation(source=concepts[source], verb=verb, target=concepts[target], note_ids=tuple(ids))
            for (source, verb, target), ids in found.items()
        )
