"""The list of Ganas: what each does next, and how its last run went."""

import asyncio

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from domain.entities.gana import Gana, GanaRun
from presentation.web import gana_work
from presentation.web.gana_words import due_words, moment_words, run_figures, run_words
from presentation.web.page_words import page_words
from presentation.web.parts import button, chip, link, link_button
from presentation.web.shell import empty, heading, plain
from presentation.web.site import Site

_LOOK_S = 2.0
_PROGRESS_S = 0.4
_RUNS = 500


async def page_ganas(site: Site) -> None:
    """`/ganas`."""
    with heading("Ganas"):
        link_button("New Gana", "/ganas/new", icon="add")
    book = GanaBook(site)
    await book.look()
    site.changes.on("ganas", book.look)
    ui.timer(_LOOK_S, book.look)
    ui.timer(_PROGRESS_S, book.show_progress)


class GanaBook:
    """Each row is drawn again when it has changed, so that the others keep what the user does in them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._ganas = site.faces.ganas
        self._looking = asyncio.Lock()
        self._drawn: dict[str, object] = {}
        self._lines: dict[str, ui.label] = {}
        self._dues: dict[str, TextElement] = {}
        self._lasts: dict[str, TextElement] = {}
        self._place = ui.element("div")
        self._rows: dict[str, ui.element] = {}
        self._order: list[str] | None = None

    async def look(self) -> None:
        """Reads everything and draws what is another than before."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        ganas = await self._ganas.list()
        last: dict[str, GanaRun] = {}
        for run in await self._ganas.runs(limit=_RUNS):
            last.setdefault(run.gana_id, run)
        order = [gana.id for gana in ganas]
        if order != self._order:
            self._order = order
            self._begin(order)
        for gana in ganas:
            newest = last.get(gana.id)
            errand = gana_work.run_of(self._site, gana.id)
            running = errand is not None and errand.running
            seen = gana, newest, running
            if self._drawn.get(gana.id) != seen:
                self._drawn[gana.id] = seen
                running = running or (newest is not None and newest.status == "running")
                self._draw(gana, newest, running=running)
            # Only the time goes on: what is drawn stays.
            self._dues[gana.id].text = due_words(gana, self._ganas.now(), await self._ganas.writing(gana))
            self._lasts[gana.id].text = self._last_words(newest)
        self.show_progress()

    def show_progress(self) -> None:
        """Of the runs that are going on."""
        for gana_id, line in self._lines.items():
            line.text = gana_work.run_line(self._site, gana_id)

    def _begin(self, order: list[str]) -> None:
        self._place.clear()
        self._drawn, self._lines, self._rows = {}, {}, {}
        self._dues, self._lasts = {}, {}
        with self._place:
            if not order:
                text = (
                    "A Gana is a small task that UNIUN does for you again and again: sum up new notes every morning, "
                    "watch a tag, remind you of what you wrote. You say in plain words what it does and when."
                )
                with empty("auto_awesome", "No Ganas yet", text):
                    link_button("Write the first one", "/ganas/new", icon="add")
                return
            with ui.element("ul").classes("u-cards"):
                for gana_id in order:
                    self._rows[gana_id] = ui.element("li").classes("u-card u-gana")

    def _draw(self, gana: Gana, run: GanaRun | None, *, running: bool) -> None:
        row, name = self._rows[gana.id], gana.draft.name
        row.clear()
        with row:
            with ui.element("div").classes("u-row u-spread"):
                with ui.element("div").classes("u-gana-head"):
                    with ui.element("h2"):
                        link(name, f"/ganas/{gana.id}")
                    if running:
                        chip("running", kind="good")
                ui.switch(
                    value=gana.enabled,
                    on_change=lambda event: gana_work.switch(self._site, gana, on=bool(event.value)),
                ).props["aria-label"] = f"{name} runs by itself"
            with ui.element("p"):
                words = self._ganas.describe(gana)
                plain(f"{words[:1].upper()}{words[1:]}. ")
                self._dues[gana.id] = plain("").classes("u-muted")
            self._draw_last(gana.id, run)
            self._lines[gana.id] = ui.label("").classes("u-muted u-small u-number")
            with ui.element("div").classes("u-row u-wrap"):
                if running:
                    stop = button("Stop", icon="stop", on_click=lambda: gana_work.stop(self._site, gana.id))
                    stop.props["aria-label"] = f"Stop {name}"
                else:
                    now = button(
                        "Run now", icon="play_arrow", on_click=lambda: gana_work.run_now(self._site, gana)
                    )
                    now.props["aria-label"] = f"Run {name} now"
                edit = link_button("Edit and history", f"/ganas/{gana.id}").props("flat")
                edit.props["aria-label"] = f"Edit {name}, and its history"
                gone = button("Delete", on_click=lambda: gana_work.delete(self._site, gana)).props("flat")
                gone.props["aria-label"] = f"Delete {name}"

    def _last_words(self, run: GanaRun | None) -> str:
        if run is None:
            return "It has not run yet."
        when = moment_words(run.started_at, self._ganas.now())
        figures = f" ({run_figures(run)})" if run.status != "running" else ""
        return f"Last: {when} it {run_words(run)}{figures}. "

    def _draw_last(self, gana_id: str, run: GanaRun | None) -> None:
        with ui.element("p").classes("u-muted u-small u-gana-last"):
            self._lasts[gana_id] = plain("")
            if run is None:
                return
            if run.output:
                plain(f"“{' '.join(run.output.split())[:300]}”")
            elif run.status == "failed":
                with ui.element("span").classes("u-error"):
                    plain(page_words(run.detail))
