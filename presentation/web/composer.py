"""Where the user writes. What is typed stays in the browser until the server has taken it."""

from collections.abc import Callable
from typing import Any

from nicegui.element import Element
from nicegui.events import GenericEventArguments

LONGEST = 100_000


class Composer(Element, component="composer.js"):
    """Enter sends, Shift+Enter is a new line, Escape stops the answer. `draft_key` names what is kept for a reload."""

    def __init__(self, draft_key: str, label: str = "Message") -> None:
        super().__init__()
        self._props["draft_key"] = draft_key
        self._props["label"] = label
        self._props["longest"] = LONGEST
        self._props["busy"] = False
        self._props["waits"] = False
        self._props["branching"] = False

    def on_send(self, take: Callable[[str, str | None], Any]) -> None:
        """Text, and the id of the question that it is put in the place of. Answer with `accepted` or `refused`."""

        def told(event: GenericEventArguments) -> Any:
            said = event.args if isinstance(event.args, dict) else {}
            text, editing = said.get("text"), said.get("editing")
            if isinstance(text, str):
                return take(text[:LONGEST], editing if isinstance(editing, str) else None)
            return None

        self.on("send", told)

    def on_stop(self, stop: Callable[[], Any]) -> None:
        self.on("stop", lambda: stop(), args=[])

    def on_typing(self, typing: Callable[[], Any]) -> None:
        """At the first letter, and now and then while more follow."""
        self.on("typing", lambda: typing(), args=[])

    def busy(self, busy: bool) -> None:
        """While an answer comes, the button stops it."""
        if self._props["busy"] != busy:
            self._props["busy"] = busy

    def wait(self, waits: bool) -> None:
        """While another program answers here, nothing can be sent, and nothing stopped."""
        if self._props["waits"] != waits:
            self._props["waits"] = waits

    def branch(self, branching: bool) -> None:
        """While what is written next does not follow the end of what there is."""
        if self._props["branching"] != branching:
            self._props["branching"] = branching

    def focus(self) -> None:
        """So that the user can write at once."""
        self.run_method("focus")

    def accepted(self, draft_key: str) -> None:
        """The text is in the database."""
        self.run_method("accepted", draft_key)

    def refused(self) -> None:
        """The text comes back into the box, which was emptied when it was sent."""
        self.run_method("refused")

    def edit(self, message_id: str, text: str) -> None:
        """Puts a question that was asked into the box."""
        self.run_method("edit", message_id, text)
