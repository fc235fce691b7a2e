"""What a Gana would write, tried with the form as it stands. Publishes nothing."""

import asyncio
from collections.abc import Callable

from nicegui import ui

from domain.entities.gana import GanaProgress, GanaRun
from domain.entities.llm import TextDelta
from domain.errors import InvalidField
from presentation.web.gana_form import GanaForm
from presentation.web.gana_words import progress_words, run_figures, run_words
from presentation.web.notices import sentence
from presentation.web.page_words import page_words
from presentation.web.parts import main_button
from presentation.web.shell import plain
from presentation.web.site import Site

_DRAW_S = 0.1


class GanaPreview:
    """One trial at a time; it ends with the page."""

    def __init__(
        self, site: Site, gana_id: str, form: GanaForm, refuse: Callable[[InvalidField], None]
    ) -> None:
        self._ganas = site.faces.ganas
        self._gana_id = gana_id
        self._form = form
        self._refuse = refuse
        self._task: asyncio.Task[None] | None = None
        self._progress: GanaProgress | None = None
        self._text = ""
        self._round = 0
        with ui.element("h2"):
            plain("Preview")
        with ui.element("p").classes("u-field-help"):
            plain(
                "What it would write, before you save it. Nothing is kept. It reads what is new to it; where nothing is, the "
                "newest notes that it watches."
            )
        with ui.element("div").classes("u-row"):
            self._begin = main_button("Try it", icon="play_arrow", on_click=self.begin)
            self._stop = ui.button("Stop", icon="stop", color=None, on_click=self.stop)
            self._stop.props("no-caps outline").classes("u-button").set_visibility(False)
        self._state = ui.label("").classes("u-muted u-small u-number").props("role=status")
        self._shown = (
            ui.label("").classes("u-preline u-preview-text").props('role=region aria-label="What it wrote"')
        )
        self._timer: ui.timer | None = None
        ui.context.client.on_delete(self.stop)

    def begin(self) -> None:
        """With the fields as they are."""
        if (self._task is not None and not self._task.done()) or not self._form.check():
            return
        self._text, self._round, self._progress = "", 0, None
        self._shown.text = ""
        self._begin.disable()
        self._stop.set_visibility(True)
        self._timer = ui.timer(_DRAW_S, self._draw)
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """The job ends at its next token."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            run = await self._ganas.preview(
                self._gana_id, self._form.fields(), self._watch, read_old_notes=self._form.read_old_notes
            )
        except asyncio.CancelledError:
            self._end("Stopped.")
            raise
        except InvalidField as error:
            self._end("")
            with self._shown:
                self._refuse(error)
        except Exception as error:  # noqa: BLE001 - said where the text would be
            self._end(sentence(error))
        else:
            self._tell(run)

    def _watch(self, progress: GanaProgress) -> None:
        self._progress = progress
        if progress.round != self._round:
            self._round, self._text = progress.round, ""
        if isinstance(progress.event, TextDelta):
            self._text += progress.event.text

    def _tell(self, run: GanaRun) -> None:
        self._text = run.output
        words = "It would write this" if run.status == "succeeded" else f"It {run_words(run)}"
        said = run.reason in ("nothing_to_say", "no_new_input")
        detail = f" {page_words(run.detail)}" if run.detail and not said else ""
        self._end(f"{words} ({run_figures(run)}).{detail}")

    def _draw(self) -> None:
        self._state.text = progress_words(self._progress)
        self._shown.text = self._text

    def _end(self, words: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stop.set_visibility(False)
        self._begin.enable()
        self._shown.text = self._text
        self._state.text = words
