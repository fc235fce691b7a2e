"""Saves what is typed into a note, one save at a time, and never over somebody else's change."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from domain.entities.note import Note
from domain.errors import NoteChanged, NoteNotFound, UniunError
from domain.usecases.notes import title_of
from presentation.controllers.notes import NotesController
from presentation.web.notes_field import Edit, is_blank
from presentation.web.notices import sentence

GONE = "the note was deleted elsewhere. Copy your text, or type it into a new note."


class Field(Protocol):
    """Where it is typed."""

    def saved(self, serial: int, note: Note) -> None: ...

    def failed(self, why: str) -> None: ...

    def conflict(self) -> None: ...

    def load(self, note: Note, serial: int | None = None) -> None: ...

    def resend(self) -> None: ...


class NoteSaver:
    """Of one page. `note` is what was last loaded or saved here; `theirs` is the other version while there is a conflict."""

    def __init__(self, notes: NotesController, note: Note, field: Field, *, kept: bool = True) -> None:
        """`kept`: a blank note that was just begun is not, until something is typed."""
        self.kept = kept
        self._notes = notes
        self._field = field
        self._turn = asyncio.Lock()
        self._deleted = False
        self._newest: Edit | None = None
        self._left: str | None = None
        """The content in whose place another one was loaded. What was typed into it is still to be saved as its change."""
        self.note = note
        self.theirs: Note | None = None

    async def take(self, edit: Edit) -> bool:
        """Saves it, unless a newer one comes before its turn. Whether something was saved."""
        self._newest = edit
        async with self._turn:
            if self._deleted:
                return False
            newest, self._newest = self._newest, None
            return newest is not None and self.theirs is None and await self._save(newest)

    async def delete(self) -> None:
        """After the save that is under way; none follows. Raises `NoteNotFound`."""
        async with self._turn:
            self._deleted = True
            if self.kept:
                await self._notes.delete(self.note.id)

    async def keep(self) -> None:
        """A note that was just begun, unless another tab has kept it; and one that was blank, for it may have gone as
        another page was left."""
        if not self.kept or is_blank(self.note):
            await self._notes.keep(self.note)
        self.kept = True

    async def leave(self) -> bool:
        """The note goes if nothing is left in it and nothing points to it; it is kept again when something is typed.
        Whether it went."""
        async with self._turn:
            if (
                not self.kept
                or not is_blank(self.note)
                or self.theirs is not None
                or self._newest is not None
            ):
                return False
            if gone := await self._notes.take_back(self.note.id):
                self.kept = False
            return gone

    async def _save(self, edit: Edit) -> bool:
        try:
            await self.keep()
            self.note = await self._notes.change(
                self.note.id,
                # A title that was not touched goes on following the first line of the text.
                title=edit.title if edit.title != self.note.title else None,
                text=edit.text,
                seen=self._left if edit.seen and edit.seen == self._left else self.note.content_hash,
            )
        except NoteChanged:
            now = await self._now()
            if (now.title, now.text) != (edit.title, edit.text):
                self.theirs = now
                self._field.conflict()
                return False
            self.note = now
        except NoteNotFound:
            self._field.failed(GONE)
            return False
        except UniunError as error:
            self._field.failed(sentence(error))
            return False
        except Exception as error:  # noqa: BLE001 - the text is in the browser still; the user must learn that it is nowhere else
            self._field.failed(sentence(error))
            return False
        self._field.saved(edit.serial, self.note)
        return True

    async def retag(self, add: Sequence[str], remove: Sequence[str]) -> None:
        """Changes the tags that are not written in the text. Raises `InvalidRequest`, `NoteChanged`."""
        async with self._turn:
            kept = [tag for tag in self._notes.own_tags(self.note) if tag not in remove]
            self.note = await self._notes.change(
                self.note.id, tags=[*kept, *add], seen=self.note.content_hash
            )

    async def look(self, saved: int | None) -> bool:
        """The note may have been changed elsewhere: if nothing is typed here, it is shown as it is now. Whether it was.
        `saved` is the serial of the last keystroke if all is saved, else none."""
        async with self._turn:
            if not self.kept or saved is None or self._newest is not None or self.theirs is not None:
                return False
            now = await self._now()
            if self._newest is not None or now.content_hash == self.note.content_hash:
                return False
            if (now.title, now.text) != (self.note.title, self.note.text):
                self._left = self.note.content_hash
                self._field.load(now, saved)
            self.note = now
            return True

    async def found_draft(self) -> None:
        """The field holds a draft that was typed into what the note is no longer."""
        self.theirs = await self._now()

    # -- the ways out of a conflict

    def keep_mine(self) -> None:
        """What stands in the field becomes the note; the other's text is in nothing any more."""
        assert self.theirs is not None
        self.note, self.theirs, self._left = self.theirs, None, None
        self._field.resend()

    def take_theirs(self) -> None:
        """What was typed here goes."""
        assert self.theirs is not None
        self.note, self.theirs, self._left = self.theirs, None, None
        self._field.load(self.note)

    async def keep_both(self, mine: Edit) -> Note:
        """What was typed here becomes another note."""
        title = mine.title.strip() or title_of(mine.text)
        copy = await self._notes.add(mine.text, title=f"{title} (my version)")
        self.take_theirs()
        return copy

    async def _now(self) -> Note:
        return (await self._notes.show(self.note.id)).note
