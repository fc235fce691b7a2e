"""The knowledge graph: reading notes into it, looking at it, and what could not be read."""

from collections.abc import AsyncGenerator, Callable, Sequence
from types import TracebackType

from domain.entities.knowledge import Neighbourhood, NoteReading, ReadingOverview
from domain.entities.llm import GenerationEvent, LlmTaskKind
from domain.entities.note import Note
from domain.usecases.knowledge import (
    ExtractionFailure,
    ExtractKnowledgeUseCase,
    ListFailuresUseCase,
    NotesNamingUseCase,
    Reading,
    ReadingProgress,
    ReadPendingNotesUseCase,
    RetryExtractionUseCase,
    ShowGraphUseCase,
    WatchReadingUseCase,
)
from domain.usecases.reading import OverlookReadingUseCase
from domain.usecases.scheduler import SetForegroundKindUseCase


class OpenedNote:
    """While it is entered (`with`), the note is what the user looks at, and its extraction goes before the rest."""

    def __init__(
        self, note_id: str, extract: ExtractKnowledgeUseCase, set_foreground: SetForegroundKindUseCase
    ) -> None:
        self._note_id = note_id
        self._extract = extract
        self._set_foreground = set_foreground

    def __enter__(self) -> "OpenedNote":
        self._set_foreground(LlmTaskKind.EXTRACT, self._note_id)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set_foreground(None)

    async def read(self) -> Reading:
        """Reads the note if it is still to be read. Cancelling it leaves the note to the backfill."""
        return await self._extract(self._note_id, opened=True)


class KnowledgeController:
    """What a graph page, a note page and `uniun notes` need."""

    def __init__(
        self,
        extract: ExtractKnowledgeUseCase,
        read_pending: ReadPendingNotesUseCase,
        show_graph: ShowGraphUseCase,
        list_failures: ListFailuresUseCase,
        retry: RetryExtractionUseCase,
        set_foreground: SetForegroundKindUseCase,
        watch_reading: WatchReadingUseCase,
        notes_naming: NotesNamingUseCase,
        overlook: OverlookReadingUseCase,
    ) -> None:
        self._overlook = overlook
        self._watch_reading = watch_reading
        self._notes_naming = notes_naming
        self._extract = extract
        self._read_pending = read_pending
        self._show_graph = show_graph
        self._list_failures = list_failures
        self._retry = retry
        self._set_foreground = set_foreground

    def open_note(self, note_id: str) -> OpenedNote:
        """For as long as a note is on the screen."""
        return OpenedNote(note_id, self._extract, self._set_foreground)

    async def read_opened(self, note_id: str) -> Reading:
        """Reads a note that the user looks at, if it is still to be read. Cancelling it leaves it to the backfill."""
        return await self._extract(note_id, opened=True)

    async def reading(self, note_id: str) -> NoteReading:
        """How far the reading of a note is."""
        return await self._watch_reading(note_id)

    async def overview(self) -> ReadingOverview:
        """How far the reading of all notes is."""
        return await self._overlook()

    def reading_paused(self) -> bool:
        """Whether the user wants nothing to be read by itself."""
        return self._overlook.paused()

    async def notes_naming(self, concept_id: str, limit: int = 50) -> tuple[Note, ...]:
        """Notes that name a concept."""
        return await self._notes_naming(concept_id, limit)

    def read_pending(
        self, on_event: Callable[[GenerationEvent], None] = lambda event: None
    ) -> AsyncGenerator[ReadingProgress, None]:
        """Works the list off; may be left at any moment."""
        return self._read_pending(on_event)

    async def graph(
        self, name: str | None = None, *, manas_id: str | None = None, hops: int = 1, limit: int = 100
    ) -> Neighbourhood:
        """The most named concepts, or what is around one; empty when nothing is called so."""
        return await self._show_graph(name, manas_id=manas_id, hops=hops, limit=limit)

    async def failures(self, limit: int = 100) -> tuple[ExtractionFailure, ...]:
        """Notes that were given up, newest first."""
        return await self._list_failures(limit)

    async def retry(self, note_ids: Sequence[str] | None = None) -> int:
        """Makes them wait again; all of them when none are named."""
        return await self._retry(note_ids)
