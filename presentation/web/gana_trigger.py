"""When a Gana runs: in plain words, and what they were understood to mean."""

from collections.abc import Callable

from nicegui import ui

from domain.errors import InvalidField
from domain.usecases.trigger_words import EXAMPLES
from presentation.controllers.gana import GanaController, TriggerReading
from presentation.web.gana_words import moment_words
from presentation.web.page_words import page_words
from presentation.web.shell import plain


class TriggerField:
    """`before` are the words of the stored Gana; as long as they are not touched, nothing of the trigger changes."""

    def __init__(
        self, ganas: GanaController, before: str | None, on_read: Callable[[], None] = lambda: None
    ) -> None:
        self._ganas = ganas
        self._on_read = on_read
        self._before = before
        self._stored = ""
        self.reading: TriggerReading | None = None
        self.field = (
            ui.input("When it runs", value=before or "", placeholder=EXAMPLES[0], on_change=self.read)
            .props("outlined stack-label debounce=250 autocomplete=off")
            .classes("u-bar")
            .without_auto_validation()  # or what is read below would be wiped again
        )
        self._meaning = ui.element("p").classes("u-field-help").props("role=status")
        with ui.element("div").classes("u-examples").props('role=group aria-label="Examples"'):
            for example in EXAMPLES:
                ui.button(
                    example, color=None, on_click=lambda example=example: self.field.set_value(example)
                ).props("no-caps outline dense").classes("u-chip-button u-muted")
        self._read()

    def tell_stored(self, words: str) -> None:
        """What is said under the field as long as it is as it was stored."""
        if words != self._stored:
            self._stored = words
            self._read()

    @property
    def words(self) -> str | None:
        """What was written, if it is another than before."""
        said = str(self.field.value or "").strip()
        return None if said == (self._before or "") and self._before is not None else said or "by hand"

    @property
    def names_input(self) -> bool:
        """Whether the words that were written name what is to be read."""
        return self.words is not None and self.reading is not None and self.reading.reactive

    def read(self) -> None:
        """Shows what the words mean, or why they mean nothing."""
        self._read()
        self._on_read()

    def _read(self) -> None:
        said = str(self.field.value or "").strip() or "by hand"
        self._meaning.clear()
        self.reading = None
        if self._before is not None and said == self._before:
            self.field.error = None
            with self._meaning:
                plain(self._stored)
            return
        try:
            self.reading = self._ganas.read_trigger(said)
        except InvalidField as error:
            self.field.error = page_words(str(error))
            return
        self.field.error = None
        with self._meaning:
            plain(meaning(self.reading, self._ganas))


def meaning(reading: TriggerReading, ganas: GanaController) -> str:
    """The words as they were understood, and the next times."""
    said = f"{reading.words[:1].upper()}{reading.words[1:]}."
    if not reading.fires:
        return said if reading.reactive else f"{said} It runs only when you say so."
    first, *rest = reading.fires
    times = [moment_words(first, ganas.now()), *(ganas.local(fire) for fire in rest)]
    return f"{said} Next: {', then '.join(times)}."
