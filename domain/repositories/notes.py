"""Where notes, Manases and links live."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.entities.note import ImportedOrigin, Link, Manas, Note, NoteArrival, NoteLine, SearchHit


class NoteRepository(Protocol):
    """Every method is one transaction. Writers also queue what follows from a changed note: its vector, its extraction.

    A `tag` given to a query is in `normal_tag` form and finds the tags nested below it too: a finds a/b. A link is
    resolved when it is asked for, whatever the case: a title or an alias equal to the target, else to its last path
    component; of several notes the one whose origin (without .md) ends with the target, else the oldest.
    """

    async def save(self, notes: Sequence[Note], *, extract: bool = True) -> None:
        """Creates or replaces notes with their tags and links, and queues embedding and (unless told not to)
        extraction of those whose content changed, in the same transaction."""
        ...

    async def replace(self, note: Note, seen: str) -> bool:
        """Saves a note whose stored content has the hash `seen`; false, and nothing saved, if it has another or is gone."""
        ...

    async def begin(self, note: Note) -> bool:
        """Saves a note unless there is one with its id; false, and nothing saved, if there is."""
        ...

    async def take_back(self, note_id: str, seen: str) -> bool:
        """Deletes a note whose stored content has the hash `seen`, unless it is in a Manas or another note links to it; false,
        and nothing deleted, otherwise."""
        ...

    async def get(self, note_id: str) -> Note:
        """Raises `NoteNotFound`."""
        ...

    async def many(self, note_ids: Sequence[str]) -> tuple[Note, ...]:
        """Those that exist, in the order asked for."""
        ...

    async def by_origin(self, origins: Sequence[str]) -> dict[str, Note]:
        """Imported notes by the path that they came from."""
        ...

    async def imported_origins(self) -> dict[str, ImportedOrigin]:
        """By path, of every imported note."""
        ...

    async def written_here(self) -> dict[str, tuple[str, str]]:
        """The hash of the text (`hash_text`) to (note id, title), of every note that was not imported and is not empty; of
        several with one text the oldest."""
        ...

    async def deleted_origins(self) -> dict[str, str]:
        """Path to `origin_mark`, of imported notes that were deleted and have not been imported again."""
        ...

    async def delete(self, note_id: str, *, again: bool = False) -> None:
        """With its tags, links, vector, pending work and everything that it had asserted. Raises `NoteNotFound`.

        The file of an imported note is among `deleted_origins` then, unless it may be imported `again`.
        """
        ...

    async def lines(
        self, *, tag: str | None = None, manas_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[NoteLine, ...]:
        """Newest change first."""
        ...

    async def count(self, *, tag: str | None = None, manas_id: str | None = None) -> int:
        """Of all notes, or of those that `lines` would list."""
        ...

    async def search(
        self, query: str, *, tag: str | None = None, manas_id: str | None = None, limit: int = 20
    ) -> tuple[SearchHit, ...]:
        """Full text over title, tags and text; any query is harmless. Best first.

        With a tag, of those that have it or one nested below it.
        """
        ...

    async def matching(
        self, queries: Sequence[str], *, manas_id: str | None = None, limit: int = 20
    ) -> tuple[tuple[str, ...], ...]:
        """The note ids that `search` finds, for each of several queries."""
        ...

    async def tags(self) -> dict[str, int]:
        """Tag to number of notes."""
        ...

    async def links_from(self, note_id: str) -> tuple[Link, ...]:
        """In the order of the text."""
        ...

    async def links_to(self, note_id: str) -> tuple[Link, ...]:
        """Backlinks."""
        ...

    async def link_target(self, target: str) -> str | None:
        """The note that a link to this name or path means."""
        ...

    async def titles(self, beginning: str, *, limit: int) -> tuple[str, ...]:
        """Of notes whose title or alias begins so, whatever the case: the shortest first, each once; of an empty
        beginning the titles changed last."""
        ...

    async def arrived_since(
        self,
        after: int | None,
        *,
        tag: str | None,
        manas_id: str | None,
        limit: int,
        changed: tuple[datetime, datetime] | None = None,
    ) -> tuple[NoteArrival, ...]:
        """Notes of a tag or a Manas that first got the tag, or first came into the Manas, after an arrival, and that were
        changed after one time and until another; in the order of arrival, each once; never notes that a Gana wrote. Neither an edit of a note
        nor its coming back is an arrival."""
        ...

    async def last_arrival(self) -> int:
        """The number of the newest arrival in any tag or Manas; 0 before the first."""
        ...

    async def note_ids(self, manas_id: str | None, *, tag: str | None = None) -> tuple[str, ...]:
        """Of one Manas, of one tag, or of all notes; sorted."""
        ...


class ManasRepository(Protocol):
    """Named sets of notes."""

    async def all(self) -> tuple[Manas, ...]:
        """By name."""
        ...

    async def create(self, name: str) -> Manas:
        """Raises `InvalidRequest` if the name is taken."""
        ...

    async def get(self, manas_id: str) -> Manas:
        """By id or by name. Raises `ManasNotFound`."""
        ...

    async def of_note(self, note_id: str) -> tuple[Manas, ...]:
        """Those that have the note, by name."""
        ...

    async def rename(self, manas_id: str, name: str) -> None:
        """Raises `ManasNotFound`, and `InvalidRequest` if another one is called so."""
        ...

    async def delete(self, manas_id: str) -> None:
        """The notes stay. Raises `ManasNotFound`."""
        ...

    async def add(self, manas_id: str, note_ids: Sequence[str]) -> None:
        """Adding what is there already is no error."""
        ...

    async def remove(self, manas_id: str, note_ids: Sequence[str]) -> None:
        """Removing what is not there is no error."""
        ...
