"""How far a note is read into the graph, and its reading before all others while it is open."""

import asyncio
from collections.abc import Awaitable, Callable

from nicegui import ui

from domain.entities.knowledge import NoteReading
from domain.errors import JobCancelled, UniunError
from presentation.counting import counted
from presentation.web.notices import sentence
from presentation.web.page_words import page_words
from presentation.web.parts import button
from presentation.web.shell import plain
from presentation.web.site import Site

LOOK_S = 1.0
QUIET_S = 4.0
"""What is being typed is not read: it would be read in vain."""
_PAUSED = "reading is paused."
AGAIN_S = 30.0
"""After what was not the note's fault, a missing model for example."""


class ReadingState:
    """One line, and a button when it failed. `has_been_read` is called whenever the note has newly been read; `is_empty`
    tells whether there is nothing to read in it."""

    def __init__(
        self,
        site: Site,
        note_id: str,
        has_been_read: Callable[[], Awaitable[object]],
        is_empty: Callable[[], bool],
    ) -> None:
        self._site = site
        self._note_id = note_id
        self._has_been_read = has_been_read
        self._is_empty = is_empty
        self._task: asyncio.Task[object] | None = None
        self._not_before = 0.0
        self._hindrance: str | None = None
        self._shown: NoteReading | None = None
        with (
            ui.element("div")
            .classes("u-row u-wrap u-reading")
            .props("role=status aria-live=polite") as self._row
        ):
            self._dot = ui.element("span").classes("u-state-dot").props("aria-hidden=true")
            self._words = plain("")
            self._retry = button("Try again", on_click=self._try_again).classes("u-chip-button")
        self._retry.set_visibility(False)
        ui.context.client.on_delete(self._stop)

    def follow(self) -> None:
        """From now on. When the page is drawn: a timer waits for the connection, and with it the page would be sent as far
        as it is."""
        ui.timer(LOOK_S, self.look)

    def typed(self) -> None:
        """The note is being changed."""
        self._not_before = self._site.now() + QUIET_S
        self._shown = None

    async def look(self) -> None:
        """Costs nothing once the note has been read."""
        if self._shown is not None and self._shown.state == "read":
            return
        reading = await self._site.faces.knowledge.reading(self._note_id)
        paused = self._site.faces.knowledge.reading_paused()
        due = self._task is None and self._site.now() >= self._not_before
        if reading.state == "waiting" and due and not paused:
            self._task = asyncio.get_running_loop().create_task(self._read())
        if reading.state == "waiting":
            self._hindrance = _PAUSED if paused else None if self._hindrance == _PAUSED else self._hindrance
        if reading != self._shown or self._words.text != self._told(reading):
            newly = reading.state == "read" and self._shown is not None
            self._show(reading)
            if newly:
                await self._has_been_read()

    async def _read(self) -> None:
        try:
            await self._site.faces.knowledge.read_opened(self._note_id)
            self._hindrance = None
            self._not_before = self._site.now() + LOOK_S
        except JobCancelled:
            self._not_before = self._site.now() + QUIET_S
        except UniunError as error:
            self._hindrance = sentence(error)
            self._not_before = self._site.now() + AGAIN_S
        finally:
            self._task = None

    def _show(self, reading: NoteReading) -> None:
        self._shown = reading
        self._words.text = self._told(reading)
        state = "" if self._is_empty() else f" u-state-dot-{reading.state}"
        self._dot.classes(replace=f"u-state-dot{state}")
        self._retry.set_visibility(reading.state == "failed")

    def _told(self, reading: NoteReading) -> str:
        return "Nothing to read yet" if self._is_empty() else reading_words(reading, self._hindrance)

    async def _try_again(self) -> None:
        await self._site.faces.knowledge.retry([self._note_id])
        self._shown = None
        await self.look()

    def _stop(self) -> None:
        """The backfill goes on with it."""
        if self._task is not None:
            self._task.cancel()


def reading_words(reading: NoteReading, hindrance: str | None = None) -> str:
    """A sentence for the user."""
    match reading.state:
        case "read":
            return "Read into the graph"
        case "reading":
            return (
                f"Being read now… {counted(reading.tokens, 'token')}" if reading.tokens else "Being read now…"
            )
        case "failed":
            return f"Could not be read: {page_words(reading.error or 'the model gave no usable answer.')}"
    if reading.position is not None:
        about = f", about {max(1, round(reading.estimated_start_s))} s" if reading.estimated_start_s else ""
        return f"Waiting to be read: place {reading.position} in the queue{about}"
    return f"Waiting to be read: {hindrance}" if hindrance else "Waiting to be read"
