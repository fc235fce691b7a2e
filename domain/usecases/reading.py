"""How far the reading of all notes is."""

from domain.entities.knowledge import ReadingOverview
from domain.repositories.background_reading import BackgroundReading
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.notes import NoteRepository


class OverlookReadingUseCase:
    """Counts and an estimate; cheap enough to be asked for every few seconds."""

    def __init__(
        self, knowledge: KnowledgeRepository, notes: NoteRepository, background: BackgroundReading
    ) -> None:
        self._knowledge = knowledge
        self._notes = notes
        self._background = background

    async def __call__(self) -> ReadingOverview:
        """The estimate is of the pace so far, and none while nothing is read or little has been."""
        counts = await self._knowledge.pending_counts()
        waiting, paused = counts.get("waiting", 0), self.paused()
        hindrance = None if paused else self._background.hindrance
        pace_s = None if paused or hindrance else self._background.pace_s()
        return ReadingOverview(
            notes=await self._notes.count(),
            waiting=waiting,
            failed=counts.get("failed", 0),
            paused=paused,
            hindrance=hindrance,
            left_s=waiting * pace_s if pace_s is not None and waiting else None,
        )

    def paused(self) -> bool:
        """Whether the user wants nothing to be read by itself."""
        return self._background.paused()
