"""Saves what is typed into a note, one save at a time, and never over somebody else's change."""

from typing import Protocol

from domain.entities.note import Note
from domain.errors import NoteChanged, UniunError
from presentation.controllers.notes import NotesController
from presentation.web.notes_field import Edit
from presentation.web.notices import sentence


class Field(Protocol):
    """Where it is typed."""

    def saved(self, serial: int, note: Note) -> None: ...

    def failed(self, why: str) -> None: ...

    def conflict(self) -> None: ...

    def load(self, note: Note) -> None: ...

    def resend(self) -> None: ...


class NoteSaver:
    """Of one page. `note` is what was last loaded or saved here; `theirs` is set while there is a conflict."""

    def __init__(self, notes: NotesController, note: Note) -> None:
        self._notes = notes
        self.note = note
        self.theirs: Note | None = None
        self.mine: Edit | None = None
        self._newest: Edit | None = None
        self._saving = False

    async def take(self, edit: Edit, field: Field) -> bool:
        """Saves the newest of what has been taken meanwhile. Whether something was saved."""
        self._newest = edit
        if self._saving or self.theirs is not None:
            return False
        self._saving = True
        saved = False
        try:
            while (newest := self._newest) is not None and self.theirs is None:
                self._newest = None
                saved = await self._save(newest, field) or saved
        finally:
            self._saving = False
        return saved

    async def _save(self, edit: Edit, field: Field) -> bool:
        try:
            self.note = await self._notes.change(
                self.note.id,
                # A title that was not touched goes on following the first line of the text.
                title=edit.title if edit.title != self.note.title else None,
                text=edit.text,
                seen=self.note.content_hash,
            )
        except NoteChanged:
            now = (await self._notes.show(self.note.id)).note
            if (now.title, now.text) != (edit.title, edit.text):
                self.mine, self.theirs = edit, now
                field.conflict()
                return False
            self.note = now
        except UniunError as error:
            field.failed(sentence(error))
            return False
        field.saved(edit.serial, self.note)
        return True

    async def look(self, field: Field, *, all_saved: bool) -> bool:
        """The note may have been changed elsewhere: if nothing is typed here, it is shown as it is now. Whether it was."""
        if not all_saved or self._saving or self.theirs is not None:
            return False
        now = (await self._notes.show(self.note.id)).note
        if now.content_hash == self.note.content_hash:
            return False
        self.note = now
        field.load(now)
        return True

    async def draft_of_another(self) -> None:
        """A draft was found that was typed into what the note is no longer."""
        self.theirs = (await self._notes.show(self.note.id)).note

    # -- the ways out of a conflict

    def keep_mine(self, field: Field) -> None:
        """What stands in the field becomes the note; the other's text is in nothing any more."""
        assert self.theirs is not None
        self.note, self.theirs, self.mine = self.theirs, None, None
        field.resend()

    def take_theirs(self, field: Field) -> None:
        """What was typed here goes."""
        assert self.theirs is not None
        self.note, self.theirs, self.mine = self.theirs, None, None
        field.load(self.note)

    async def keep_both(self, mine: Edit, field: Field) -> Note:
        """What was typed here becomes another note."""
        copy = await self._notes.add(mine.text, title=f"{mine.title} (my version)")
        self.take_theirs(field)
        return copy
