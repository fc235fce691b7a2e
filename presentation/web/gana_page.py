"""One Gana: its form, a preview beside it, and its log below."""

import uuid
from collections.abc import Callable

from nicegui import ui

from domain.entities.gana import Gana
from domain.entities.llm import LlmTaskKind
from domain.errors import InvalidField, UniunError
from presentation.web import gana_work
from presentation.web.gana_form import GanaForm
from presentation.web.gana_preview import GanaPreview
from presentation.web.gana_runs import GanaRuns
from presentation.web.gana_words import moment_words
from presentation.web.notices import tell, tell_error
from presentation.web.parts import button, link_button, main_button
from presentation.web.shell import heading, plain
from presentation.web.site import Site

_LOOK_S = 1.5
_PROGRESS_S = 0.4


async def page_gana(site: Site, gana_id: str) -> None:
    """`/ganas/{id}`."""
    gana = await site.faces.ganas.get(gana_id)
    await _draw(site, gana)


async def page_new_gana(site: Site) -> None:
    """`/ganas/new`."""
    await _draw(site, None)


async def _draw(site: Site, gana: Gana | None) -> None:
    gana_id = gana.id if gana is not None else uuid.uuid4().hex
    site.enter_surface(LlmTaskKind.GANA, gana_id)
    with heading(gana.draft.name if gana is not None else "New Gana"):
        link_button("All Ganas", "/ganas").props("flat")
    state = GanaState(site, gana) if gana is not None else None
    manases = await site.faces.manases.list()
    models = [model.name for model in site.faces.models.shelf().installed]
    with ui.element("div").classes("u-two"):
        with ui.element("section").classes("u-card").props('aria-label="What it is"'):
            form = GanaForm(site.faces.ganas, gana, manases, models)
            desk = GanaDesk(site, gana, form)
            with ui.element("div").classes("u-row u-wrap"):
                if gana is None:
                    main_button("Save and switch on", on_click=lambda: desk.create(on=True))
                    button("Save, leave it off", on_click=lambda: desk.create(on=False))
                else:
                    main_button("Save", on_click=desk.change)
        with ui.element("section").classes("u-card u-preview").props('aria-label="Preview"'):
            GanaPreview(site, gana_id, form, desk.refuse)
    if gana is not None:
        with ui.element("section").classes("u-card u-section").props('aria-label="History"'):
            with ui.element("h2"):
                plain("History")
            runs = GanaRuns(site, gana.id)
            await runs.look()
            site.changes.on("ganas", runs.look)
            ui.timer(_LOOK_S, runs.look)
    if state is not None:
        state.follow(form.tell_stored)


class GanaDesk:
    """Keeps what is in the form."""

    def __init__(self, site: Site, gana: Gana | None, form: GanaForm) -> None:
        self._site = site
        self._gana = gana
        self._form = form

    async def create(self, *, on: bool) -> None:
        """And goes to its page."""
        if not self._form.check():
            return
        ganas = self._site.faces.ganas
        try:
            gana = await ganas.create(self._form.fields(), read_old_notes=self._form.read_old_notes)
        except UniunError as error:
            self.refuse(error)
            return
        if on:
            await gana_work.switch(self._site, gana, on=True)
        self._site.changes.tell("ganas")
        ui.navigate.to(f"/ganas/{gana.id}")

    async def change(self) -> None:
        """Its log and what it has read stay."""
        if self._gana is None or not self._form.check():
            return
        try:
            self._gana = await self._site.faces.ganas.change(self._gana.id, self._form.fields())
        except UniunError as error:
            self.refuse(error)
            return
        tell("Saved.")
        self._site.changes.tell("ganas")

    def refuse(self, error: UniunError) -> None:
        """Beside the field, or as a notice where there is none."""
        if not (isinstance(error, InvalidField) and self._form.refuse(error)):
            tell_error(error)


class GanaState:
    """Whether it is on, what it does now, and what can be done with it."""

    def __init__(self, site: Site, gana: Gana) -> None:
        self._site = site
        self._id = gana.id
        self._drawn: object = None
        self._tell: Callable[[Gana, str | None], None] = lambda gana, writing: None
        self._place = ui.element("div").classes("u-row u-wrap")
        self._line = ui.label("").classes("u-muted u-small u-number").props("role=status")
        self._show(gana)

    def follow(self, tell: Callable[[Gana, str | None], None]) -> None:
        """From now on, and tells what it saw. Timers come last on a page: they wait for its connection, and then it is sent
        as far as it is."""
        self._tell = tell
        self._site.changes.on("ganas", self.look)
        ui.timer(_LOOK_S, self.look)
        ui.timer(_PROGRESS_S, self._progress)

    async def look(self) -> None:
        """Draws what has changed; leaves the page when it is gone."""
        try:
            gana = await self._site.faces.ganas.get(self._id)
        except UniunError:
            ui.navigate.to("/ganas")
            return
        self._tell(gana, await self._site.faces.ganas.writing(gana))
        self._show(gana)

    def _progress(self) -> None:
        self._line.text = gana_work.run_line(self._site, self._id)

    def _show(self, gana: Gana) -> None:
        errand = gana_work.run_of(self._site, self._id)
        running = errand is not None and errand.running
        seen = gana, running
        if seen == self._drawn:
            return
        self._drawn = seen
        self._place.clear()
        with self._place:
            ui.switch(
                "Runs by itself",
                value=gana.enabled,
                on_change=lambda event: gana_work.switch(self._site, gana, on=bool(event.value)),
            )
            if running:
                button("Stop", icon="stop", on_click=lambda: gana_work.stop(self._site, self._id)).props(
                    'aria-label="Stop"'
                )
            else:
                button(
                    "Run now", icon="play_arrow", on_click=lambda: gana_work.run_now(self._site, gana)
                ).props('aria-label="Run now"')
            button("Delete", on_click=lambda: gana_work.delete(self._site, gana)).props(
                'flat aria-label="Delete"'
            )
            with ui.element("span").classes("u-muted"):
                if gana.enabled and gana.due_at is not None:
                    plain(f"Next: {moment_words(gana.due_at, self._site.faces.ganas.now())}")
