"""The log of a Gana: what each run read and wrote, what it took, and why it wrote nothing."""

import asyncio

from nicegui import ui

from domain.entities.gana import RUNS_PER_GANA, GanaRun
from domain.errors import NotFound
from presentation.web.gana_words import REASONS, moment_words, run_figures, run_words
from presentation.web.page_words import page_words
from presentation.web.parts import link
from presentation.web.shell import plain
from presentation.web.site import Site

_INPUTS = 6
"""Notes of one run that are named; of the rest only the number is."""


class GanaRuns:
    """Newest first. A row that is open stays so when others come."""

    def __init__(self, site: Site, gana_id: str) -> None:
        self._site = site
        self._gana_id = gana_id
        self._looking = asyncio.Lock()
        self._drawn: dict[str, GanaRun] = {}
        self._rows: dict[str, ui.element] = {}
        self._titles: dict[str, str | None] = {}
        """Of notes that were read; none for one that is gone."""
        self._none = ui.element("p").classes("u-muted")
        with self._none:
            plain("It has not run yet.")
        self._list = ui.element("div").classes("u-runs")

    async def look(self) -> None:
        """Draws what is new or has changed."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        runs = await self._site.faces.ganas.runs(self._gana_id, limit=RUNS_PER_GANA)
        self._none.set_visibility(not runs)
        for gone in set(self._drawn) - {run.id for run in runs}:
            self._rows.pop(gone).delete()
            del self._drawn[gone]
        for place, run in enumerate(runs):
            if self._drawn.get(run.id) == run:
                continue
            if run.id in self._rows:
                self._rows.pop(run.id).delete()
            self._drawn[run.id] = run
            for note_id in run.input_note_ids[:_INPUTS]:
                await self._look_up(note_id)
            with self._list:
                self._rows[run.id] = self._draw(run)
            self._rows[run.id].move(target_index=place)

    def _draw(self, run: GanaRun) -> ui.element:
        now = self._site.faces.ganas.now()
        with ui.element("details") as row:
            with ui.element("summary"):
                with ui.element("span"):
                    words = run_words(run)
                    plain(f"{words[:1].upper()}{words[1:]}")
                with ui.element("span").classes("u-muted u-small u-number"):
                    figures = f" · {run_figures(run)}" if run.status != "running" else ""
                    plain(f"{moment_words(run.started_at, now)}{figures}")
            self._draw_body(run)
        return row

    def _draw_body(self, run: GanaRun) -> None:
        named = run.input_note_ids[:_INPUTS]
        inputs = [(note_id, title) for note_id in named if (title := self._titles.get(note_id)) is not None]
        with ui.element("div").classes("u-run-body"):
            if run.reason is not None or run.detail:
                with ui.element("p"):
                    reason = REASONS.get(run.reason or "", "")
                    plain(page_words(run.detail) or f"{reason[:1].upper()}{reason[1:]}.")
            if run.input_note_ids:
                with ui.element("div"):
                    with ui.element("h3"):
                        plain("Read")
                    with ui.element("div").classes("u-row u-wrap"):
                        for note_id, title in inputs:
                            link(title, f"/notes/{note_id}").classes("u-chip")
                        more = len(run.input_note_ids) - len(inputs)
                        if more:
                            plain(f"and {more} more")
            with ui.element("div"):
                with ui.element("h3"):
                    plain("Wrote")
                with ui.element("p").classes("u-preline"):
                    plain(run.output or "Nothing.")
                if run.output_note_id is not None:
                    link("Open the note", f"/notes/{run.output_note_id}")

    async def _look_up(self, note_id: str) -> None:
        if note_id in self._titles:
            return
        try:
            self._titles[note_id] = (await self._site.faces.notes.show(note_id)).note.title or "Untitled"
        except NotFound:
            self._titles[note_id] = None
