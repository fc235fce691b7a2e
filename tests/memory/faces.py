"""The faces of a library in memory, over real Markdown and real folders."""

import tempfile
from contextlib import nullcontext
from pathlib import Path

from data.demo.load import sample_folder
from data.embedding.worker import EmbeddingWorker
from data.export.archive import FolderArchives
from data.importing.folder import FolderImporter
from data.importing.uploads import UploadFolder
from data.markdown.parser import MarkdownNoteParser
from data.note_changes import LocalNoteChanges
from domain.errors import InvalidRequest
from domain.usecases.embedding import EmbedNotesUseCase
from domain.usecases.export import BackUpUseCase, ExportUseCase, RestoreUseCase
from domain.usecases.importing import ImportFolderUseCase, ImportUploadUseCase, UndoImportUseCase
from domain.usecases.manases import (
    ChangeManasUseCase,
    CreateManasUseCase,
    DeleteManasUseCase,
    ListManasesUseCase,
    RenameManasUseCase,
)
from domain.usecases.notes import (
    CompleteTitleUseCase,
    ComposeNote,
    CreateNoteUseCase,
    DeleteNoteUseCase,
    EditNoteUseCase,
    FindNoteUseCase,
    FollowLinkUseCase,
    GetNoteUseCase,
    ListNotesUseCase,
    TagNoteUseCase,
)
from domain.usecases.search import SearchNotesUseCase
from presentation.cli.openers import Library
from presentation.controllers.archive import ArchiveController
from presentation.controllers.knowledge import KnowledgeController
from presentation.controllers.notes import ManasController, NotesController
from tests.memory.api_keys import MemoryApiKeys, api_keys_controller
from tests.memory.cards import MemoryCards
from tests.memory.claims import MemoryClaims
from tests.memory.clock import HandClock
from tests.memory.conversations import MemoryConversations
from tests.memory.gana_faces import GanaFaces
from tests.memory.ganas import MemoryGanas
from tests.memory.identity import CountingIdentities
from tests.memory.library import MemoryLibrary


class NoBackups:
    """A library in memory is no file."""

    folder = Path("backups")

    def new_target(self) -> Path:
        return Path("uniun.db")

    async def write(self, target: Path) -> int:
        raise InvalidRequest("The database is on a PostgreSQL server. Back it up with: pg_dump")

    async def check(self, source: Path) -> None:
        """Nothing is refused before it is tried."""

    async def restore(self, source: Path) -> Path | None:
        raise InvalidRequest("The database is on a PostgreSQL server. Restore it with: pg_restore")


class MemoryFaces:
    """Everything that the command line wants of an open library; the fakes below it can be looked at."""

    def __init__(self, library: MemoryLibrary, knowledge: KnowledgeController) -> None:
        self.library = library
        self.cards = MemoryCards()
        self.conversations = MemoryConversations()
        self.ganas = MemoryGanas(library.notes)
        self.agents: GanaFaces | None = None
        """Deck and Ganas, once somebody gives it a scheduler."""
        self.announced: list[str] = []
        self.api_keys = MemoryApiKeys()
        self._knowledge = knowledge
        self.identities = CountingIdentities()
        self._changes = LocalNoteChanges()
        self._changes.listen(self.announced.extend)
        self._parser = MarkdownNoteParser()

    def open(self) -> Library:
        """The same state every time."""
        return Library(
            notes=self.notes(),
            manases=ManasController(
                ListManasesUseCase(self.library.manases),
                CreateManasUseCase(self.library.manases),
                DeleteManasUseCase(self.library.manases),
                ChangeManasUseCase(self.library.manases, self.library.notes, self._changes),
                FindNoteUseCase(self.library.notes),
                RenameManasUseCase(self.library.manases),
            ),
            knowledge=lambda: self._knowledge,
            nataraj=lambda: self._agents().nataraj_controller(),
            ganas=lambda: self._agents().gana_controller(),
            archive=ArchiveController(self.export(), BackUpUseCase(NoBackups()), RestoreUseCase(NoBackups())),
            api_keys=api_keys_controller(self.api_keys, self.identities),
        )

    def _agents(self) -> GanaFaces:
        assert self.agents is not None
        return self.agents

    def notes(self) -> NotesController:
        notes, library = self.library.notes, self.library
        edit = EditNoteUseCase(self._parser, notes, self.identities, self._changes)
        importer = FolderImporter(notes, self._parser, self.identities, self._changes)
        return NotesController(
            create=CreateNoteUseCase(ComposeNote(self._parser, self.identities), notes, self._changes),
            edit=edit,
            tag=TagNoteUseCase(edit, notes, self._parser),
            delete=DeleteNoteUseCase(notes, self.cards),
            find=FindNoteUseCase(notes),
            follow_link=FollowLinkUseCase(notes),
            complete_title=CompleteTitleUseCase(notes),
            get=GetNoteUseCase(self._parser, notes, library.knowledge),
            list_notes=ListNotesUseCase(notes),
            search=SearchNotesUseCase(notes, library.vectors, library.embedder),
            import_folder=ImportFolderUseCase(importer),
            import_upload=ImportUploadUseCase(UploadFolder(Path(tempfile.gettempdir())), importer),
            undo_import=UndoImportUseCase(notes, DeleteNoteUseCase(notes, self.cards)),
            samples=sample_folder(),
            manases=ListManasesUseCase(library.manases),
            embed=EmbedNotesUseCase(
                library.vectors,
                EmbeddingWorker(library.vectors, nullcontext(library.embedder), MemoryClaims()),
            ),
        )

    def export(self) -> ExportUseCase:
        return ExportUseCase(
            self.library.notes,
            self.library.manases,
            self.library.knowledge,
            self.conversations,
            self.cards,
            self.ganas,
            self._parser,
            FolderArchives(HandClock()),
        )
