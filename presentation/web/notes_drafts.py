"""Texts that were typed into new notes and could not be kept: they are in the browser still, and are offered there."""

import re

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from presentation.web.site import Site

NEW_ID = re.compile(r"[0-9a-f]{32}")
_MOST = 200
"""Asked about at once; the browser asks again on the next visit."""


class LostDrafts(Element, component="notes_drafts.js"):
    """Shown only if the browser has some whose notes do not exist; `only` of that one note."""

    def __init__(self, site: Site, only: str = "") -> None:
        super().__init__()
        self._site = site
        self._props["only"] = only
        self.on("found", self._found)

    async def _found(self, event: GenericEventArguments) -> None:
        match event.args:
            case {"notes": [*notes], "texts": [*texts]}:
                asked = [note for note in notes[:_MOST] if isinstance(note, str) and NEW_ID.fullmatch(note)]
                missing = await self._site.faces.notes.missing(asked)
                saved = await self._site.faces.notes.same(_texts(texts[:_MOST]))
                self.run_method("offer", list(missing), list(saved))


def _texts(told: list[object]) -> dict[str, tuple[str, str]]:
    """(title, text) by the ids of their notes."""
    found: dict[str, tuple[str, str]] = {}
    for each in told:
        match each:
            case [str(note), str(title), str(text)] if NEW_ID.fullmatch(note):
                found[note] = (title, text)
    return found
