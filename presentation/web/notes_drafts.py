"""Texts that were typed into new notes and could not be kept: they are in the browser still, and are offered there."""

import re

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from presentation.web.site import Site

NEW_ID = re.compile(r"[0-9a-f]{32}")
_MOST = 20


class LostDrafts(Element, component="notes_drafts.js"):
    """Shown only if the browser has some whose notes do not exist; `only` of that one note."""

    def __init__(self, site: Site, only: str = "") -> None:
        super().__init__()
        self._site = site
        self._props["only"] = only
        self.on("found", self._found)

    async def _found(self, event: GenericEventArguments) -> None:
        match event.args:
            case {"notes": [*notes]}:
                asked = [note for note in notes[:_MOST] if isinstance(note, str) and NEW_ID.fullmatch(note)]
                self.run_method("offer", list(await self._site.faces.notes.missing(asked)))
