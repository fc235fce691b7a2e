"""How far the reading of all notes is, and its switch."""

from typing import Any

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from domain.entities.preferences import PreferencesView
from domain.errors import UniunError
from domain.reading_words import overview_words
from presentation.web.notices import tell, tell_error
from presentation.web.parts import button, section
from presentation.web.shell import plain
from presentation.web.site import Site

LOOK_S = 3.0


class ReadingLine:
    """One line over the notes for as long as some are to be read."""

    def __init__(self, site: Site) -> None:
        self._site = site
        with ui.element("div").classes("u-row u-wrap u-muted u-small u-reading-line") as self._row:
            self._words = plain("").classes("u-number")
            self._pause = button("Pause reading", icon="pause", on_click=lambda: self._use(read=False))
            self._go_on = button("Go on reading", icon="play_arrow", on_click=lambda: self._use(read=True))
            for made in (self._pause, self._go_on):
                made.props("flat dense")
        self._row.set_visibility(False)

    async def follow(self) -> None:
        """Last: a timer waits for the connection, and with it the page would be sent as far as it is."""
        await self.look()
        with self._row:
            ui.timer(LOOK_S, self.look, immediate=False)

    async def look(self) -> None:
        overview = await self._site.faces.knowledge.overview()
        self._row.set_visibility(overview.waiting > 0)
        self._words.text = overview_words(overview)
        self._pause.set_visibility(not overview.paused)
        self._go_on.set_visibility(overview.paused)

    async def _use(self, *, read: bool) -> None:
        if use_reading(self._site, read=read):
            await self.look()


def draw_reading(site: Site, view: PreferencesView) -> None:
    """The same switch among the settings."""
    with section("Reading notes"):
        with ui.element("p").classes("u-muted"):
            plain(
                "The model reads notes into the graph while nobody waits for it. Off, nothing is read by itself, not even a "
                "note that you open; what has been read stays, and the rest is read when you turn it on again."
            )

        def choose(event: ValueChangeEventArguments[Any]) -> None:
            if use_reading(site, read=event.value is True):
                tell("Kept. It holds from now on.")

        switch = ui.switch("Read notes in the background", value=view.in_force.read_notes is not False)
        fixed = view.fixed.get("read_notes")
        if fixed is not None:
            switch.disable()
            with ui.element("p").classes("u-field-help"):
                plain(f"{fixed} decides it, which goes before what is chosen.")
        switch.on_value_change(choose)


def use_reading(site: Site, *, read: bool) -> bool:
    """Whether it could be kept."""
    try:
        view = site.faces.settings.change({"read_notes": read})
    except UniunError as error:
        tell_error(error)
        return False
    if (fixed := view.fixed.get("read_notes")) is not None:
        tell(f"{fixed} decides whether notes are read, whatever is chosen here.")
    return True
