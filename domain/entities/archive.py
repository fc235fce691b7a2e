"""What an export holds beside the entities themselves."""

from domain.entities.entity import Entity
from domain.entities.knowledge import Concept


class ManasExport(Entity):
    """A Manas with its notes."""

    id: str
    name: str
    note_ids: tuple[str, ...]


class KnowledgeExport(Entity):
    """What was read in one note."""

    note_id: str
    summary: str | None
    concepts: tuple[Concept, ...]


class ExportReport(Entity):
    """Counts."""

    notes: int
    conversations: int
    cards: int
    ganas: int
    left: int = 0
    """Files of an earlier export in the same folder whose notes and conversations are gone."""
