"""The knowledge graph, and the durable list of notes that are still to be read."""

from collections.abc import Sequence
from typing import Protocol

from domain.entities.knowledge import Concept, Extraction, Neighbourhood, PendingExtraction, Relation


class KnowledgeRepository(Protocol):
    """Every method is one transaction."""

    async def pending(self, limit: int, *, oldest: bool = False) -> tuple[PendingExtraction, ...]:
        """Waiting notes, the last changed first, or `oldest` that one which waits longest; failed ones are not among them, nor those that another process reads."""
        ...

    async def pending_counts(self) -> dict[str, int]:
        """State to number of notes: `waiting`, `failed`."""
        ...

    async def pending_of(self, note_id: str) -> PendingExtraction | None:
        """None when the note has been read."""
        ...

    async def failures(self, limit: int = 100) -> tuple[PendingExtraction, ...]:
        """Notes that were given up, newest first, each with its error."""
        ...

    async def retry(self, note_ids: Sequence[str] | None = None) -> int:
        """Makes failed ones wait again; all of them when none are named. Returns how many."""
        ...

    async def assert_extraction(self, note_id: str, content_hash: str, extraction: Extraction) -> bool:
        """Replaces what the note had asserted and nothing else, merges entity names, and takes the note off the list.

        False, and nothing changed, if the note has changed since or is gone.
        """
        ...

    async def fail(self, note_id: str, content_hash: str, error: str, *, give_up_after: int) -> None:
        """Counts an attempt; past the limit the note is marked failed, with the error."""
        ...

    async def summary(self, note_id: str) -> str | None:
        """One line, none before the note has been read."""
        ...

    async def summaries(self, note_ids: Sequence[str]) -> dict[str, str]:
        """Note id to its line, of those that have been read."""
        ...

    async def relations_of(self, note_ids: Sequence[str]) -> tuple[Relation, ...]:
        """What these notes assert; `note_ids` of a relation are those among them, and concepts come without aliases."""
        ...

    async def related_notes(
        self, names: Sequence[str], note_ids: Sequence[str], *, manas_id: str | None = None, limit: int = 10
    ) -> tuple[str, ...]:
        """Notes, of a Manas or of all, that name what is called so or what these notes name, or what relations lead to
        from there; those that name most of it first.

        What very many notes name tells little about any of them, and is left aside: the time that this takes does not
        grow with the number of notes.
        """
        ...

    async def concepts_of(self, note_ids: Sequence[str]) -> tuple[Concept, ...]:
        """Concepts that these notes name."""
        ...

    async def notes_naming(self, concept_ids: Sequence[str], limit: int) -> tuple[str, ...]:
        """Notes that name any of them, most of them first."""
        ...

    async def neighbours(
        self, concept_ids: Sequence[str], *, hops: int = 1, limit: int = 50
    ) -> Neighbourhood:
        """The graph around some concepts, at most two hops."""
        ...

    async def find_concepts(self, text: str, limit: int = 20) -> tuple[Concept, ...]:
        """Concepts by (part of a) name or alias."""
        ...

    async def graph(self, *, manas_id: str | None = None, limit: int = 500) -> Neighbourhood:
        """The most named concepts and the relations between them."""
        ...
