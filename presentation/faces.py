"""What a running UNIUN offers to its faces: pages, API and command line get everything from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from domain.usecases.health import DiagnoseUseCase
    from presentation.controllers.api import ApiController, ApiKeysController
    from presentation.controllers.archive import ArchiveController
    from presentation.controllers.ask import AskController
    from presentation.controllers.background import BackgroundController
    from presentation.controllers.chat import ChatController
    from presentation.controllers.composer_chat import ComposerChatController
    from presentation.controllers.demo import DemoController
    from presentation.controllers.gana import GanaController
    from presentation.controllers.knowledge import KnowledgeController
    from presentation.controllers.models import ModelsController
    from presentation.controllers.nataraj import NatarajController
    from presentation.controllers.notes import ManasController, NotesController
    from presentation.controllers.peers import PeersController
    from presentation.controllers.scheduler import SchedulerController
    from presentation.controllers.settings import SettingsController


@dataclass(frozen=True)
class Controllers:
    """Valid while the context manager that gave them is open. What is a function here makes a new one at each call."""

    chat: Callable[[str | None, str | None], ChatController]
    """A new conversation, from a model name and a system prompt."""
    composer_chat: Callable[[str | None, str | None], ComposerChatController]
    """A chat beside the note editor, from a note's id and a model name."""
    ask: AskController
    models: ModelsController
    scheduler: SchedulerController
    notes: NotesController
    """What is saved through it wakes the background work beside it."""
    manases: ManasController
    knowledge: KnowledgeController
    nataraj: NatarajController
    ganas: GanaController
    archive: ArchiveController
    background: Callable[[], BackgroundController]
    demo: Callable[[], DemoController]
    diagnose: Callable[[], DiagnoseUseCase]
    settings: SettingsController
    api: ApiController
    """What other programs ask for over HTTP."""
    api_keys: ApiKeysController
    version: Callable[[], str]
    peers: PeersController
    """For other processes of the same user."""
