"""When a note was changed elsewhere while it was being written: nothing is overwritten before the user has chosen."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from presentation.web.notes_field import NoteField
from presentation.web.notes_saver import NoteSaver
from presentation.web.notices import tell
from presentation.web.parts import button
from presentation.web.shell import plain

_SHOWN = 5_000
"""Characters of the other version."""


class ConflictBanner:
    """Seen while there is a conflict."""

    def __init__(self, saver: NoteSaver, field: NoteField, settled: Callable[[], Awaitable[None]]) -> None:
        self._saver = saver
        self._field = field
        self._settled = settled
        self.box = ui.element("div").classes("u-banner u-warn u-stack u-conflict").props("role=alert")
        self.box.set_visibility(False)

    def show(self, *, draft: bool = False) -> None:
        """Or hides it."""
        theirs = self._saver.theirs
        if theirs is None:
            self.box.set_visibility(False)
            return
        if self.box.visible:
            return
        self.box.clear()
        with self.box:
            with ui.element("p"):
                plain(
                    "This browser still had text of yours that was not saved, and the note has been changed since."
                    if draft
                    else "The note was changed elsewhere while you were writing, by an import or another page."
                )
                plain(" Nothing is overwritten: your text stands below, and is kept in this browser.")
            with ui.element("div").classes("u-row u-wrap"):
                button("Keep mine", on_click=self._keep_mine)
                button("Take the other", on_click=self._take_theirs)
                button("Keep both", on_click=self._keep_both)
            with ui.element("details"):
                with ui.element("summary"):
                    plain("Show the other version")
                with (
                    ui.element("pre")
                    .classes("u-other-version")
                    .props('tabindex=0 aria-label="The other version"')
                ):
                    plain(
                        f"{theirs.title}\n\n{theirs.text[:_SHOWN]}{'…' if len(theirs.text) > _SHOWN else ''}"
                    )
        self.box.set_visibility(True)

    async def _keep_mine(self) -> None:
        self._saver.keep_mine()
        await self._end()

    async def _take_theirs(self) -> None:
        self._saver.take_theirs()
        await self._end()

    async def _keep_both(self) -> None:
        copy = await self._saver.keep_both(await self._field.current())
        tell(f"Your text is now the note “{copy.title[:80]}”.")
        await self._end()

    async def _end(self) -> None:
        self.show()
        await self._settled()
