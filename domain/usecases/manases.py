"""Named sets of notes."""

from collections.abc import Sequence

from domain.entities.note import Manas, clean_title, normal_tag
from domain.errors import InvalidRequest, NotFound
from domain.repositories.note_changes import NoteChanges
from domain.repositories.notes import ManasRepository, NoteRepository

_PAGE = 500
_MOST_NOTES = 200_000
_MOST_HITS = 1_000


class ListManasesUseCase:
    """All of them."""

    def __init__(self, manases: ManasRepository) -> None:
        self._manases = manases

    async def __call__(self) -> tuple[Manas, ...]:
        """By name."""
        return await self._manases.all()

    async def get(self, reference: str) -> Manas:
        """By id or name. Raises `ManasNotFound`."""
        return await self._manases.get(reference)

    async def of_note(self, note_id: str) -> tuple[Manas, ...]:
        """Those that have the note, by name."""
        return await self._manases.of_note(note_id)


class CreateManasUseCase:
    """An empty one."""

    def __init__(self, manases: ManasRepository) -> None:
        self._manases = manases

    async def __call__(self, name: str) -> Manas:
        """Raises `InvalidRequest` if the name is empty, too long or taken."""
        return await self._manases.create(_clean(name))


class RenameManasUseCase:
    """Its notes stay."""

    def __init__(self, manases: ManasRepository) -> None:
        self._manases = manases

    async def __call__(self, reference: str, name: str) -> Manas:
        """Raises `ManasNotFound`, and `InvalidRequest` if the name is empty, too long or taken."""
        manas = await self._manases.get(reference)
        await self._manases.rename(manas.id, _clean(name))
        return await self._manases.get(manas.id)


class DeleteManasUseCase:
    """The notes stay."""

    def __init__(self, manases: ManasRepository) -> None:
        self._manases = manases

    async def __call__(self, reference: str) -> Manas:
        """Returns what it was. Raises `ManasNotFound`."""
        manas = await self._manases.get(reference)
        await self._manases.delete(manas.id)
        return manas


class ChangeManasUseCase:
    """Puts notes into a Manas and takes them out."""

    def __init__(self, manases: ManasRepository, notes: NoteRepository, changes: NoteChanges) -> None:
        self._manases = manases
        self._notes = notes
        self._changes = changes

    async def add(
        self,
        reference: str,
        *,
        note_ids: Sequence[str] = (),
        tag: str | None = None,
        query: str | None = None,
    ) -> Manas:
        """Notes by id, by tag, by a search for words, or all of these. Raises `ManasNotFound`, `NotFound`."""
        manas = await self._manases.get(reference)
        chosen = await self._chosen(note_ids, tag, query)
        await self._manases.add(manas.id, chosen)
        self._changes.announce(chosen)
        return await self._manases.get(manas.id)

    async def remove(
        self,
        reference: str,
        *,
        note_ids: Sequence[str] = (),
        tag: str | None = None,
        query: str | None = None,
    ) -> Manas:
        """Like `add`."""
        manas = await self._manases.get(reference)
        await self._manases.remove(manas.id, await self._chosen(note_ids, tag, query))
        return await self._manases.get(manas.id)

    async def _chosen(self, note_ids: Sequence[str], tag: str | None, query: str | None) -> list[str]:
        if not note_ids and tag is None and query is None:
            raise InvalidRequest("Say which notes: name them, or give a tag or a search.")
        chosen = list(note_ids)
        for offset in range(0, _MOST_NOTES, _PAGE) if tag is not None else ():
            page = await self._notes.lines(tag=normal_tag(tag or ""), limit=_PAGE, offset=offset)
            chosen += [line.id for line in page]
            if len(page) < _PAGE:
                break
        if query is not None:
            chosen += [hit.note_id for hit in await self._notes.search(query, limit=_MOST_HITS)]
        if not chosen:
            raise NotFound(
                "No note fits. Look for some with: uniun notes list --tag TAG, or uniun notes search WORDS"
            )
        return list(dict.fromkeys(chosen))


def _clean(name: str) -> str:
    clean = clean_title(name)
    if not clean or len(clean) > 200:
        raise InvalidRequest("A Manas needs a name of 1 to 200 characters.")
    return clean
