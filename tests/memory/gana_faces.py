"""Deck and Ganas over fakes: everything that their controllers want, and what lies below."""

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from data.gana.due_times import CalendarDueTimes
from data.markdown.parser import MarkdownNoteParser
from domain.errors import WebhookFailed
from domain.repositories.identity import Identities
from domain.repositories.model_store import ModelStore
from domain.repositories.scheduler_coordinator import SchedulerCoordinator
from domain.usecases.gana import GanaEngine, GanaMaterial
from domain.usecases.gana_book import (
    DeleteGanaUseCase,
    EnableGanaUseCase,
    LookUpGanasUseCase,
    SaveGanaUseCase,
)
from domain.usecases.gana_draft import DraftGanaUseCase, NextFiresUseCase, PreviewGanaUseCase
from domain.usecases.gana_tools import RetrievedPassages
from domain.usecases.llm import GenerateOneShotUseCase
from domain.usecases.manases import ListManasesUseCase
from domain.usecases.nataraj import (
    DropCardUseCase,
    KeepCardUseCase,
    NatarajGenerator,
    RestoreCardUseCase,
    ShowDeckUseCase,
)
from domain.usecases.notes import ComposeNote, DeleteNoteUseCase
from domain.usecases.retrieval import RetrieveContextUseCase
from domain.usecases.scheduler import SetForegroundKindUseCase
from presentation.controllers.gana import GanaController
from presentation.controllers.nataraj import NatarajController
from tests.memory.cards import MemoryCards
from tests.memory.ganas import MemoryGanas
from tests.memory.identity import CountingIdentities
from tests.memory.leases import QuietLeases
from tests.memory.library import MemoryLibrary

BERLIN = ZoneInfo("Europe/Berlin")


class KeptWebhook:
    """Implements `Webhook`: keeps what is sent, or fails."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Mapping[str, str]]] = []
        self.broken = False

    async def post(self, url: str, body: Mapping[str, str]) -> None:
        if self.broken:
            raise WebhookFailed("The webhook answered 500.")
        self.sent.append((url, body))


class KeptChanges:
    """Implements `NoteChanges`."""

    def __init__(self) -> None:
        self.announced: list[str] = []

    def announce(self, note_ids: Sequence[str]) -> None:
        self.announced += note_ids


class GanaFaces:
    """`woken` counts what was told to the ticker and the refill."""

    def __init__(
        self,
        scheduler: SchedulerCoordinator,
        models: ModelStore,
        library: MemoryLibrary,
        cards: MemoryCards,
        ganas: MemoryGanas,
        identities: Identities,
    ) -> None:
        self.library = library
        self.notes = library.notes
        self.cards = cards
        self.ganas = ganas
        self.identities = identities
        self.leases = QuietLeases()
        self.webhook = KeptWebhook()
        self.changes = KeptChanges()
        self.due_times = CalendarDueTimes(lambda: BERLIN)
        self.woken: list[str] = []
        self.compose = ComposeNote(MarkdownNoteParser(), identities)
        self.generate = GenerateOneShotUseCase(scheduler, models)
        retrieve = RetrieveContextUseCase(
            library.embedder, library.vectors, self.notes, library.knowledge, ganas
        )
        self.engine = GanaEngine(
            ganas,
            GanaMaterial(
                self.notes, library.knowledge, RetrievedPassages(retrieve), self.compose, self.changes
            ),
            self.generate,
            models,
            self.leases,
            self.webhook,
            identities,
        )
        self.generator = NatarajGenerator(cards, self.notes, self.generate, models, identities)
        self._foreground = SetForegroundKindUseCase(scheduler)

    def gana_controller(self) -> GanaController:
        draft = DraftGanaUseCase(self.due_times, self.identities)
        return GanaController(
            look_up=LookUpGanasUseCase(self.ganas),
            draft=draft,
            save=SaveGanaUseCase(
                self.ganas, self.library.manases, self.library.notes, self.due_times, self.identities
            ),
            enable_gana=EnableGanaUseCase(self.ganas, self.due_times, self.identities),
            delete=DeleteGanaUseCase(self.ganas),
            engine=self.engine,
            preview_gana=PreviewGanaUseCase(self.engine, self.ganas, draft, self.identities),
            next_fires=NextFiresUseCase(self.due_times, self.identities),
            set_foreground=self._foreground,
            changed=lambda: self.woken.append("ticker"),
        )

    def nataraj_controller(self) -> NatarajController:
        return NatarajController(
            generator=self.generator,
            show_deck=ShowDeckUseCase(self.cards, self.notes),
            keep_card=KeepCardUseCase(self.cards, self.notes, self.compose, self.changes),
            drop_card=DropCardUseCase(self.cards),
            restore_card=RestoreCardUseCase(
                self.cards, self.notes, DeleteNoteUseCase(self.notes, self.cards)
            ),
            manases=ListManasesUseCase(self.library.manases),
            set_foreground=self._foreground,
            looked_at=self.woken.append,
        )


def agents_over(
    scheduler: SchedulerCoordinator,
    models: ModelStore,
    library: MemoryLibrary,
    cards: MemoryCards,
    ganas: MemoryGanas,
    identities: CountingIdentities,
) -> GanaFaces:
    """With ids that count, as everything else of the same program: a card and a note never have the same."""
    return GanaFaces(scheduler, models, library, cards, ganas, identities)
