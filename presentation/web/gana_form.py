"""The fields of a Gana. What is refused is said beside its field."""

from collections.abc import Mapping
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from domain.entities.gana import Gana
from domain.entities.note import Manas
from domain.errors import InvalidField
from presentation.controllers.gana import GanaController
from presentation.web.gana_trigger import TriggerField
from presentation.web.gana_words import due_words
from presentation.web.page_words import page_words
from presentation.web.parts import fold
from presentation.web.shell import plain

_INPUTS = {
    "nothing": "Nothing: it only needs its task",
    "tag": "New notes with a tag",
    "manas": "New notes of a Manas",
}
_MISSED = {
    "latest": "Run once as soon as possible",
    "skip": "Leave it out",
    "all": "Run once for each time that was missed",
}


class GanaForm:
    """`gana` is none for a new one."""

    def __init__(
        self, ganas: GanaController, gana: Gana | None, manases: tuple[Manas, ...], models: list[str]
    ) -> None:
        self._ganas = ganas
        self._gana = gana
        draft = gana.draft if gana is not None else None
        names = self._names = {manas.id: manas.name for manas in manases}
        self._name = _text("Name", draft.name if draft else "")
        self._task = (
            ui.textarea(
                "What it does",
                value=draft.task if draft else "",
                placeholder="Sum up what is new in five lines.",
            )
            .props("outlined autogrow stack-label")
            .classes("u-bar")
        )
        self.trigger = TriggerField(ganas, stored_trigger(ganas, gana, names), self._show_input)
        self._draw_input(draft.input_tag if draft else None, draft.input_manas_id if draft else None, names)
        self._manases = (
            ui.select(
                names,
                multiple=True,
                value=[each for each in (draft.manas_ids if draft else ()) if each in names],
            )
            .props('outlined use-chips label="Knowledge it may draw on"')
            .classes("u-bar")
        )
        if not names:
            self._manases.props('disable hint="A Manas is a named set of notes; make one on the notes page."')
        with ui.element("div").classes("u-two-fields"):
            self._output_tag = _text(
                "Tag of the notes that it writes", (draft.output_tag if draft else None) or ""
            )
            options = {"": "The model in use"} | {name: name for name in models}
            chosen = (draft.model if draft else None) or ""
            options.setdefault(chosen, f"{chosen} (not installed)")
            self._model = ui.select(options, value=chosen).props('outlined label="Model"')
        self._draw_more(draft.model_dump() if draft else {})
        self._old_notes = ui.checkbox("Read the notes that are there already, too")
        self._show_input()
        if gana is not None:
            self.tell_stored(gana)
        self._places: dict[str, ValidationElement[Any]] = {
            "name": self._name,
            "description": self._description,
            "task": self._task,
            "trigger": self.trigger.field,
            "interval_minutes": self.trigger.field,
            "cron": self.trigger.field,
            "once_at": self.trigger.field,
            "reactive": self.trigger.field,
            "input_tag": self._input_tag,
            "input_manas_id": self._input_manas,
            "output_tag": self._output_tag,
            "webhook": self._webhook,
        }
        for place in set(self._places.values()) - {self.trigger.field}:
            place.on_value_change(lambda event: setattr(event.sender, "error", None))

    def tell_stored(self, gana: Gana, writing: str | None = None) -> None:
        """As it is now, its time may have passed or it may have been switched on; `writing`: the note that it waits for."""
        said = stored_trigger(self._ganas, gana, self._names) or ""
        due = due_words(gana, self._ganas.now(), writing)
        self.trigger.tell_stored(f"{said[:1].upper()}{said[1:]}. {due}")

    def _draw_input(self, tag: str | None, manas_id: str | None, names: Mapping[str, str]) -> None:
        with ui.element("div").classes("u-two-fields") as self._inputs:
            kind = "tag" if tag else "manas" if manas_id else "nothing"
            self._input = ui.select(_INPUTS, value=kind, on_change=self._show_input).props(
                'outlined label="What it reads"'
            )
            self._input_tag = _text("Tag", tag or "")
            self._input_manas = ui.select(dict(names), value=manas_id if manas_id in names else None).props(
                'outlined label="Manas"'
            )

    def _draw_more(self, draft: Mapping[str, Any]) -> None:
        with fold("More"):
            self._description = _text("Description, for yourself", draft.get("description", ""))
            self._missed = ui.select(_MISSED, value=draft.get("missed_runs", "latest")).props(
                'outlined label="When its time came while UNIUN was closed"'
            )
            self._webhook = _text(
                "Webhook: an address that is sent what it wrote", str(draft.get("webhook") or "")
            )
            self._webhook.props('placeholder="https://…"')
            self._agentic = ui.checkbox("It may look things up in the notes by itself, in up to four rounds")
            self._agentic.value = bool(draft.get("agentic"))
            with ui.element("p").classes("u-field-help"):
                plain("With a webhook or with looking up, it runs only while the app is open.")

    def _show_input(self) -> None:
        named = self.trigger.names_input
        self._inputs.set_visibility(not named)
        self._old_notes.set_visibility(self._gana is None and (named or self._input.value != "nothing"))
        self._input_tag.set_visibility(self._input.value == "tag")
        self._input_manas.set_visibility(self._input.value == "manas")

    @property
    def read_old_notes(self) -> bool:
        """Whether what is there already counts as new."""
        return bool(self._old_notes.value)

    def fields(self) -> dict[str, Any]:
        """As the controller takes them."""
        told: dict[str, Any] = {
            "name": str(self._name.value or "").strip(),
            "task": str(self._task.value or "").strip(),
            "description": str(self._description.value or "").strip(),
            "manas_ids": tuple(self._manases.value or ()),
            "output_tag": str(self._output_tag.value or "").strip() or None,
            "webhook": str(self._webhook.value or "").strip() or None,
            "model": self._model.value or None,
            "missed_runs": self._missed.value,
            "agentic": bool(self._agentic.value),
        }
        if not self.trigger.names_input:
            kind = self._input.value
            told["input_tag"] = str(self._input_tag.value or "").strip() if kind == "tag" else None
            told["input_manas_id"] = self._input_manas.value if kind == "manas" else None
        if self.trigger.words is not None:
            told["trigger"] = self.trigger.words
        return told

    def check(self) -> bool:
        """What can be said before anybody is asked; false if something is missing."""
        missing = {
            self._name: "" if self._name.value else "Give it a name.",
            self._task: "" if self._task.value else "Say what it is to do.",
            self._input_tag: "Name the tag."
            if self._input.value == "tag" and not self._input_tag.value
            else "",
            self._input_manas: "Choose a Manas."
            if self._input.value == "manas" and not self._input_manas.value
            else "",
        }
        for place, why in missing.items():
            place.error = why or None
        first = next((place for place, why in missing.items() if why), None)
        if first is not None:
            first.run_method("focus")
        return first is None

    def refuse(self, error: InvalidField) -> bool:
        """Says it beside the field; false if there is none for it."""
        place = self._places.get(error.field)
        if place is None:
            return False
        place.error = page_words(str(error))
        ui.run_javascript(f"getHtmlElement({place.id})?.closest('details')?.setAttribute('open', '')")
        place.run_method("focus")
        return True


def stored_trigger(ganas: GanaController, gana: Gana | None, names: Mapping[str, str]) -> str | None:
    """In words that can be read back."""
    if gana is None:
        return None
    manas = names.get(gana.draft.input_manas_id or "", "its Manas")
    return ganas.describe(gana).replace("on new notes in its Manas", f"on new notes in {manas}")


def _text(label: str, value: str) -> ui.input:
    return ui.input(label, value=value).props("outlined autocomplete=off").classes("u-bar")
