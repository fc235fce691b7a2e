"""A chat, and the knowledge graph, over fakes."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from domain.repositories.background_reading import BackgroundReading
from domain.repositories.model_store import ModelStore
from domain.repositories.scheduler_coordinator import SchedulerCoordinator
from domain.usecases.chat import AnswerUseCase
from domain.usecases.conversations import (
    BeginConversationUseCase,
    BranchUseCase,
    ChangeConversationUseCase,
    DeleteConversationUseCase,
    ListConversationsUseCase,
    ShowConversationUseCase,
)
from domain.usecases.knowledge import (
    ExtractKnowledgeUseCase,
    ListFailuresUseCase,
    NotesNamingUseCase,
    ReadPendingNotesUseCase,
    RetryExtractionUseCase,
    ShowGraphUseCase,
    WatchReadingUseCase,
)
from domain.usecases.llm import GenerateOneShotUseCase, ReadAheadUseCase, SendChatStreamUseCase
from domain.usecases.reading import OverlookReadingUseCase
from domain.usecases.retrieval import RetrieveContextUseCase
from domain.usecases.scheduler import SetForegroundKindUseCase
from presentation.controllers.chat import ChatUseCases
from presentation.controllers.knowledge import KnowledgeController
from tests.memory.claims import MemoryClaims
from tests.memory.conversations import MemoryConversations
from tests.memory.ganas import MemoryGanas
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary


class MemoryChat:
    """Everything that a chat controller is given, and what lies behind it."""

    def __init__(
        self,
        coordinator: SchedulerCoordinator,
        store: ModelStore,
        library: MemoryLibrary | None = None,
        conversations: MemoryConversations | None = None,
    ) -> None:
        self.library = library or MemoryLibrary()
        self.conversations = conversations or MemoryConversations()
        self.identities = CountingIdentities()
        self.retrieve = RetrieveContextUseCase(
            self.library.embedder,
            self.library.vectors,
            self.library.notes,
            self.library.knowledge,
            MemoryGanas(),
        )
        self.answer = AnswerUseCase(
            SendChatStreamUseCase(coordinator, store),
            ReadAheadUseCase(coordinator, store),
            self.retrieve,
            self.conversations,
            self.library.notes,
            store,
            self.identities,
            lambda: self.pause(),
        )
        self.pause: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)
        """Between two attempts to keep an answer."""
        self.use_cases = ChatUseCases(
            answer=self.answer,
            begin=BeginConversationUseCase(self.identities, self.library.manases),
            list_conversations=ListConversationsUseCase(self.conversations),
            show=ShowConversationUseCase(self.conversations),
            branch=BranchUseCase(self.conversations),
            change=ChangeConversationUseCase(self.conversations, self.library.manases),
            delete=DeleteConversationUseCase(self.conversations),
            set_foreground=SetForegroundKindUseCase(coordinator),
        )


class NoBackgroundReading:
    """Implements `BackgroundReading`: nobody reads by himself."""

    hindrance: str | None = None
    wanted = True
    pace: float | None = None

    def paused(self) -> bool:
        return not self.wanted

    def pace_s(self) -> float | None:
        return self.pace


def knowledge_controller(
    coordinator: SchedulerCoordinator,
    store: ModelStore,
    library: MemoryLibrary,
    background: BackgroundReading | None = None,
) -> KnowledgeController:
    extract = ExtractKnowledgeUseCase(
        GenerateOneShotUseCase(coordinator, store), store, library.notes, library.knowledge, MemoryClaims()
    )
    return KnowledgeController(
        extract,
        ReadPendingNotesUseCase(extract, library.knowledge, library.notes),
        ShowGraphUseCase(library.knowledge),
        ListFailuresUseCase(library.knowledge, library.notes),
        RetryExtractionUseCase(library.knowledge),
        SetForegroundKindUseCase(coordinator),
        WatchReadingUseCase(library.knowledge, coordinator),
        NotesNamingUseCase(library.knowledge, library.notes),
        OverlookReadingUseCase(library.knowledge, library.notes, background or NoBackgroundReading()),
    )
