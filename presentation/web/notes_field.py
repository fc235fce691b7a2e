"""Title and text of a note, in the browser."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from domain.entities.note import Note
from domain.usecases.notes import UNTITLED

LONGEST_TEXT = 250_000
"""Characters that can be edited in a browser: what is sent to the server in one message has a limit of a megabyte."""
_ANSWER_S = 5.0
_LONGEST_BEGINNING = 200
"""Characters of a title that are asked for."""


@dataclass(frozen=True)
class Edit:
    """What the user has typed so far. `serial` grows with every keystroke; `seen` is the content that it was typed into, as
    far as the browser knew."""

    serial: int
    title: str
    text: str
    seen: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Standing(Edit):
    """The field at one moment; the selection is in characters of the text, and means nothing unless the user has been in
    it."""

    selection: tuple[int, int]
    placed: bool


class NoteField(Element, component="notes_field.js"):
    """Keeps what is typed in the browser until `saved` is called, and offers it again after a reload."""

    def __init__(
        self,
        note: Note,
        *,
        kept: bool,
        on_edit: Callable[[Edit], Awaitable[None]],
        on_draft: Callable[[bool], Awaitable[None]],
        on_look: Callable[[int | None], Awaitable[None]],
        on_leave: Callable[[], Awaitable[None]],
        complete: Callable[[str], Awaitable[Sequence[str]]],
    ) -> None:
        """`on_draft` is told whether the note is still what the draft found was typed into; `on_look`, when the user
        comes back to the page, the last keystroke if all that was typed is saved, else none. `on_leave` is called when the page is left and nothing stands in
        it. `complete` finds titles that begin so. `kept`: it is in the database."""
        super().__init__()
        too_long = is_too_long(note)
        self._props["note"] = note.id
        self._props["initialTitle"] = _title(note)
        self._props["initialText"] = note.text[:LONGEST_TEXT]
        self._props["seen"] = note.content_hash
        self._props["kept"] = kept
        self._props["limit"] = LONGEST_TEXT
        self._props["readonly"] = too_long

        async def edited(event: GenericEventArguments) -> None:
            if (edit := _edit(event.args)) is not None:
                await on_edit(edit)

        async def looked(event: GenericEventArguments) -> None:
            await on_look(event.args if type(event.args) is int else None)

        async def found(event: GenericEventArguments) -> None:
            await on_draft(isinstance(event.args, dict) and event.args.get("unchanged") is True)

        async def begun(event: GenericEventArguments) -> None:
            match event.args:
                case {"beginning": str() as beginning} if len(beginning) <= _LONGEST_BEGINNING:
                    self.run_method("offer", beginning, list(await complete(beginning)))

        self.on("complete", begun)
        self.on("edit", edited)
        self.on("look", looked)
        self.on("draft", found)
        self.on("leave", on_leave, args=[])

    def saved(self, serial: int, note: Note) -> None:
        """Everything up to this keystroke is in the note."""
        self.run_method("saved", serial, note.content_hash, _title(note))

    def failed(self, why: str) -> None:
        """It is tried again now and then."""
        self.run_method("fail", why, False)

    def failed_for_good(self, why: str) -> None:
        self.run_method("fail", why, True)

    def conflict(self) -> None:
        """Nothing is sent any more until `load` or `resend`."""
        self.run_method("conflict")

    def load(self, note: Note, serial: int | None = None) -> None:
        """Shows the note as it is now, and forgets what was typed. With a serial: unless more has been typed since; then
        `on_draft` is called."""
        self.run_method("load", _title(note), note.text[:LONGEST_TEXT], note.content_hash, serial)

    def forget(self) -> None:
        """What is kept in the browser goes."""
        self.run_method("forget")

    def check(self) -> None:
        """Has `on_look` called."""
        self.run_method("check")

    def resend(self) -> None:
        """Sends what stands there, as if it had just been typed."""
        self.run_method("resend")

    async def current(self) -> Standing:
        """Raises `TimeoutError` if the browser does not answer."""
        said: Any = await self.run_method("current", timeout=_ANSWER_S)
        edit = _edit(said)
        if edit is None:
            raise TimeoutError
        start, end = int(said["start"]), int(said["end"])
        return Standing(edit.serial, edit.title, edit.text, (start, end), placed=said.get("placed") is True)

    async def apply(self, serial: int, text: str, cursor: int) -> bool:
        """Puts this text in the place of the old one; false if something was typed after `serial`."""
        return await self.run_method("apply", serial, text, cursor, timeout=_ANSWER_S) is True


def is_too_long(note: Note) -> bool:
    """It can only be read in a browser."""
    return len(note.text) > LONGEST_TEXT


def is_blank(note: Note) -> bool:
    """Begun here, and not written."""
    return note.source == "typed" and note.title == UNTITLED and not note.text


def _title(note: Note) -> str:
    """As it stands in its field."""
    return "" if is_blank(note) else note.title


def _edit(said: object) -> Edit | None:
    """A browser may send anything."""
    match said:
        case {"serial": int() as serial, "title": str() as title, "text": str() as text, **more}:
            return Edit(serial, title[:500], text, seen=str(more.get("seen", "")))
        case _:
            return None
