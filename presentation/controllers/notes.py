"""Notes and sets of notes, for every face."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from domain.entities.note import (
    ImportProgress,
    ImportReport,
    Manas,
    Note,
    NoteDetails,
    NoteLine,
    SearchMode,
    SearchResult,
    UndoneImport,
)
from domain.repositories.uploads import UploadedFile
from domain.usecases.embedding import EmbedNotesUseCase
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


class NotesController:
    """Needs no language model. A `reference` is an id, the beginning of one, or a title."""

    def __init__(
        self,
        create: CreateNoteUseCase,
        edit: EditNoteUseCase,
        tag: TagNoteUseCase,
        delete: DeleteNoteUseCase,
        find: FindNoteUseCase,
        follow_link: FollowLinkUseCase,
        complete_title: CompleteTitleUseCase,
        get: GetNoteUseCase,
        list_notes: ListNotesUseCase,
        search: SearchNotesUseCase,
        import_folder: ImportFolderUseCase,
        import_upload: ImportUploadUseCase,
        undo_import: UndoImportUseCase,
        samples: Path,
        manases: ListManasesUseCase,
        embed: EmbedNotesUseCase,
    ) -> None:
        self._create = create
        self._edit = edit
        self._tag = tag
        self._delete = delete
        self._find = find
        self._follow_link = follow_link
        self._complete_title = complete_title
        self._get = get
        self._list = list_notes
        self._search = search
        self._import = import_folder
        self._import_upload = import_upload
        self._undo_import = undo_import
        self._samples = samples
        self._manases = manases
        self._embed = embed

    async def add(self, text: str, *, title: str = "", tags: Sequence[str] = ()) -> Note:
        """Keeps a new note."""
        return await self._create(text, title=title, tags=tags)

    def blank(self, note_id: str) -> Note:
        """A new one with nothing in it, which is kept nowhere until `keep`."""
        return self._create.blank(note_id)

    async def keep(self, note: Note) -> bool:
        """A blank one. False, and nothing changes, where there is one with its id."""
        return await self._create.keep(note)

    async def take_back(self, note_id: str) -> bool:
        """A note in which nothing is left, and that nothing points to, goes; false for any other."""
        return await self._delete.if_blank(note_id)

    async def missing(self, note_ids: Sequence[str]) -> tuple[str, ...]:
        """Those of which there is no note."""
        return await self._list.missing(note_ids)

    async def same(self, texts: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
        """Ids of those notes that have this title and this text already."""
        return await self._list.same(texts)

    async def show(self, reference: str) -> NoteDetails:
        """With links, backlinks and what was read in it."""
        return await self._get(await self._find(reference))

    async def begin_edit(self, reference: str) -> tuple[str, str, str]:
        """(id, text for an editor with title and tags above it, hash of the content)."""
        note_id = await self._find(reference)
        return note_id, *await self._edit.document(note_id)

    def preview_edit(self, document: str) -> tuple[str, int]:
        """(title, characters) that the note would have. Raises `InvalidRequest` if it cannot be taken back."""
        return self._edit.preview(document)

    async def finish_edit(self, note_id: str, document: str, seen: str) -> Note:
        """Takes that text back, if the content still has that hash."""
        return await self._edit.rewrite(note_id, document, seen)

    async def change(
        self,
        note_id: str,
        *,
        title: str | None = None,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        seen: str | None = None,
    ) -> Note:
        """What is not given stays. Raises `NoteChanged` if the content has another hash than `seen`."""
        return await self._edit(note_id, title=title, text=text, tags=tags, seen=seen)

    def own_tags(self, note: Note) -> tuple[str, ...]:
        """Those that are not written in its text."""
        return self._edit.own_tags(note)

    async def tag(self, reference: str, add: Sequence[str], remove: Sequence[str]) -> Note:
        """Adds and removes tags."""
        return await self._tag(await self._find(reference), add, remove)

    async def follow_link(self, target: str) -> str | None:
        """The id of the note that a link means; none while no such note exists."""
        return await self._follow_link(target)

    async def namesake(self, note: Note) -> str | None:
        """The id of another note with its title, to which links of that name lead."""
        return await self._follow_link.namesake(note)

    async def complete_title(self, beginning: str) -> tuple[str, ...]:
        """A few titles that begin so, for a link that is being typed."""
        return await self._complete_title(beginning)

    async def delete(self, reference: str) -> Note:
        """Returns what it was."""
        details = await self._get(await self._find(reference))
        await self._delete(details.note.id)
        return details.note

    async def list(
        self, *, tag: str | None = None, manas: str | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[NoteLine, ...]:
        """Newest change first. `manas` is an id or a name."""
        scope = (await self._manases.get(manas)).id if manas is not None else None
        return await self._list(tag=tag, manas_id=scope, limit=limit, offset=offset)

    async def count(self, *, tag: str | None = None, manas: str | None = None) -> int:
        """Of all notes, or of those that `list` would give."""
        scope = (await self._manases.get(manas)).id if manas is not None else None
        return await self._list.count(tag=tag, manas_id=scope)

    async def tags(self) -> dict[str, int]:
        """Tag to number of notes, most used first."""
        return await self._list.tags()

    async def search(
        self,
        query: str,
        *,
        mode: SearchMode = "words",
        tag: str | None = None,
        manas: str | None = None,
        limit: int = 20,
    ) -> SearchResult:
        """By words, by meaning, or both."""
        scope = (await self._manases.get(manas)).id if manas is not None else None
        return await self._search(query, mode=mode, tag=tag, manas_id=scope, limit=limit)

    async def import_folder(
        self,
        folder: Path,
        progress: Callable[[ImportProgress], None] = lambda step: None,
        *,
        deleted_too: bool = False,
    ) -> ImportReport:
        """Brings the notes up to date with the files; those of deleted notes only if told so, or changed."""
        return await self._import(folder, progress, deleted_too=deleted_too)

    async def import_upload(
        self,
        files: Sequence[UploadedFile],
        progress: Callable[[ImportProgress], None] = lambda step: None,
    ) -> ImportReport:
        """Files and archives that came through a browser."""
        return await self._import_upload(files, progress)

    async def import_samples(
        self, progress: Callable[[ImportProgress], None] = lambda step: None
    ) -> ImportReport:
        """The notes that come with the program, to try it on."""
        return await self._import(self._samples, progress, deleted_too=True)

    async def came_from(self, folder: Path) -> dict[str, str]:
        """What all imports of a folder have added, for `undo_import`."""
        return await self._import.came_from(folder)

    async def undo_import(
        self,
        added: Mapping[str, str],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> UndoneImport:
        """Deletes what an import has added, by its report or its steps, except what has been changed since."""
        return await self._undo_import(added, progress)

    def watch_folder(self, folder: Path) -> AsyncIterator[ImportReport]:
        """And again after every change."""
        return self._import.watch(folder)

    async def embed(self, progress: Callable[[int, int], None] = lambda done, total: None) -> int:
        """Makes the notes that wait for it findable by meaning; returns how many."""
        return await self._embed(progress)


class ManasController:
    """Named sets of notes."""

    def __init__(
        self,
        list_manases: ListManasesUseCase,
        create: CreateManasUseCase,
        delete: DeleteManasUseCase,
        change: ChangeManasUseCase,
        find: FindNoteUseCase,
        rename: RenameManasUseCase,
    ) -> None:
        self._list = list_manases
        self._create = create
        self._rename = rename
        self._delete = delete
        self._change = change
        self._find = find

    async def list(self) -> tuple[Manas, ...]:
        """By name."""
        return await self._list()

    async def get(self, reference: str) -> Manas:
        """By id or name."""
        return await self._list.get(reference)

    async def create(self, name: str) -> Manas:
        """An empty one."""
        return await self._create(name)

    async def of_note(self, note_id: str) -> tuple[Manas, ...]:
        """Those that have the note."""
        return await self._list.of_note(note_id)

    async def rename(self, reference: str, name: str) -> Manas:
        """By id or name."""
        return await self._rename(reference, name)

    async def delete(self, reference: str) -> Manas:
        """By id or name; the notes stay."""
        return await self._delete(reference)

    async def add(
        self, reference: str, notes: Sequence[str], *, tag: str | None = None, query: str | None = None
    ) -> Manas:
        """Notes by reference, by tag, by search, or all of these."""
        note_ids = [await self._find(note) for note in notes]
        return await self._change.add(reference, note_ids=note_ids, tag=tag, query=query)

    async def remove(
        self, reference: str, notes: Sequence[str], *, tag: str | None = None, query: str | None = None
    ) -> Manas:
        """Like `add`."""
        note_ids = [await self._find(note) for note in notes]
        return await self._change.remove(reference, note_ids=note_ids, tag=tag, query=query)
