"""Everything as Markdown and JSON, and a backup."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from domain.entities.archive import ExportReport, KnowledgeExport, ManasExport
from domain.entities.conversation import Conversation
from domain.entities.nataraj import WHOLE_LIBRARY, CardState
from domain.entities.note import Note
from domain.repositories.archive import Archives, ArchiveWriter, Backups, Restores
from domain.repositories.cards import CardRepository
from domain.repositories.conversations import ConversationRepository
from domain.repositories.ganas import GanaRepository
from domain.repositories.knowledge import KnowledgeRepository
from domain.repositories.note_parser import NoteParser
from domain.repositories.notes import ManasRepository, NoteRepository
from domain.usecases.export_conversations import conversation_markdown

_PAGE = 100
_MOST = 1_000_000


class ExportUseCase:
    """Reads page by page, so that a library of any size fits."""

    def __init__(
        self,
        notes: NoteRepository,
        manases: ManasRepository,
        knowledge: KnowledgeRepository,
        conversations: ConversationRepository,
        cards: CardRepository,
        ganas: GanaRepository,
        parser: NoteParser,
        archives: Archives,
    ) -> None:
        self._notes = notes
        self._manases = manases
        self._knowledge = knowledge
        self._conversations = conversations
        self._cards = cards
        self._ganas = ganas
        self._parser = parser
        self._archives = archives

    async def __call__(
        self,
        folder: Path,
        *,
        force: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ExportReport:
        """`progress` gets the notes that are written and all notes. Raises `InvalidRequest`, `UniunError`."""
        async with self._archives.create(folder, force=force) as archive:
            note_files = await self._export_notes(archive, progress)
            scopes = await self._export_manases(archive)
            return ExportReport(
                notes=len(note_files),
                conversations=await self._export_conversations(archive, note_files),
                cards=await self._export_cards(archive, scopes),
                ganas=await self._export_ganas(archive),
                left=await archive.count_others(),
            )

    async def _export_notes(
        self, archive: ArchiveWriter, progress: Callable[[int, int], None]
    ) -> dict[str, str]:
        """The names of their files by their ids."""
        ids = await self._notes.note_ids(None)
        files: dict[str, str] = {}
        for page in _pages(ids):
            notes = await self._notes.many(page)
            documents = [(note.title, self._document(note)) for note in notes]
            names = await archive.put_documents("notes", documents)
            files |= zip((note.id for note in notes), names, strict=True)
            await archive.put("notes", notes)
            progress(len(files), len(ids))
        for page in _pages(ids):
            read = [
                KnowledgeExport(
                    note_id=note_id,
                    summary=await self._knowledge.summary(note_id),
                    concepts=await self._knowledge.concepts_of([note_id]),
                )
                for note_id in page
            ]
            await archive.put("knowledge", read)
        await archive.put("relations", (await self._knowledge.graph(limit=_MOST)).relations)
        return files

    async def _export_manases(self, archive: ArchiveWriter) -> list[str]:
        manases = await self._manases.all()
        for manas in manases:
            ids = await self._notes.note_ids(manas.id)
            await archive.put("manases", [ManasExport(id=manas.id, name=manas.name, note_ids=ids)])
        return [manas.id for manas in manases]

    async def _export_conversations(self, archive: ArchiveWriter, note_files: Mapping[str, str]) -> int:
        conversations: list[Conversation] = []
        while page := await self._conversations.list(limit=_PAGE, offset=len(conversations)):
            conversations += page
        await archive.put("conversations", conversations)
        for conversation in conversations:
            messages = await self._conversations.messages(conversation.id)
            front = {"title": conversation.title, "id": conversation.id, "created": conversation.created_at}
            talk = conversation_markdown(messages, conversation.leaf_id, note_files)
            await archive.put_documents(
                "conversations", [(conversation.title, self._parser.render(front, talk))]
            )
            await archive.put("messages", messages)
        return len(conversations)

    async def _export_cards(self, archive: ArchiveWriter, scopes: Sequence[str]) -> int:
        count = 0
        for scope in (WHOLE_LIBRARY, *scopes):
            for state in get_args(CardState):
                cards = await self._cards.list(scope, state, limit=_MOST)
                await archive.put("cards", cards)
                count += len(cards)
        return count

    async def _export_ganas(self, archive: ArchiveWriter) -> int:
        ganas = await self._ganas.all()
        await archive.put("ganas", ganas)
        await archive.put("runs", await self._ganas.runs(limit=_MOST))
        return len(ganas)

    def _document(self, note: Note) -> str:
        inside = self._parser.parse(note.text, front_matter=False).text_tags
        front = {
            "title": note.title,
            "id": note.id,
            "tags": [tag for tag in note.tags if tag not in inside],
            "aliases": list(note.aliases),
            "created": note.created_at,
            "updated": note.changed_at,
            "source": note.source,
            "origin": note.origin,
        }
        return self._parser.render(front, note.text)


class BackUpUseCase:
    """Copies the database while it is used."""

    def __init__(self, backups: Backups) -> None:
        self._backups = backups

    async def __call__(self, target: Path) -> int:
        """Bytes written. Raises `InvalidRequest`, `DatabaseError`."""
        return await self._backups.write(target)

    @property
    def folder(self) -> Path:
        """Where those go that are given no name."""
        return self._backups.folder

    async def now(self) -> tuple[Path, int]:
        """The same into the folder for backups, under a name of its own."""
        target = self._backups.new_target()
        return target, await self._backups.write(target)


class RestoreUseCase:
    """Goes back to a backup."""

    def __init__(self, restores: Restores) -> None:
        self._restores = restores

    async def check(self, source: Path) -> None:
        """Raises `InvalidRequest` for what would be refused, before the user is asked whether to do it."""
        await self._restores.check(source)

    async def __call__(self, source: Path) -> Path | None:
        """Where what was there is kept. Raises `InvalidRequest`, `DatabaseError`."""
        return await self._restores.restore(source)


def _pages(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[at : at + _PAGE] for at in range(0, len(ids), _PAGE)]
