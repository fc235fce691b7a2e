"""Where the user writes. What is typed stays in the browser until the server has taken it."""

import re
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from domain.errors import InvalidRequest
from presentation.web.notices import tell_error

LONGEST = 100_000
_ID = re.compile(r"[0-9a-f]{32}")
_MOST_UNSURE = 100


class Composer(Element, component="composer.js"):
    """Enter sends, Shift+Enter is a new line, Escape stops the answer. `draft_key` names what is kept for a reload."""

    def __init__(self, draft_key: str, label: str = "Message", *, where: str = "") -> None:
        """`where` tells where other branches are found."""
        super().__init__()
        self._props["where"] = where
        self._props["draft_key"] = draft_key
        self._props["label"] = label
        self._props["longest"] = LONGEST
        self._props["busy"] = False
        self._props["waits"] = False
        self._props["branching"] = False
        self.question_id: str | None = None
        """Of what was sent last, until it is taken or refused. The browser made it up."""
        self.again = False
        """Whether that was sent before, and may be in the database."""

    def on_send(self, take: Callable[[str, str | None], Any]) -> None:
        """Text, and the id of the question that it is put in the place of. Answer with `taken` or `refused`: until then
        the browser says it again."""

        async def told(event: GenericEventArguments) -> None:
            said = event.args if isinstance(event.args, dict) else {}
            text, editing, question_id = said.get("text"), said.get("editing"), said.get("id")
            if not isinstance(text, str) or not _is_id(question_id) or question_id == self.question_id:
                return
            self.question_id, self.again = question_id, bool(said.get("again"))
            if len(text) > LONGEST:
                self.refused()
                tell_error(InvalidRequest(f"A question may have {LONGEST:,} characters. Shorten it."))
                return
            try:
                taking = take(text, editing if isinstance(editing, str) else None)
                if isawaitable(taking):
                    await taking
            except Exception:
                self.refused(question_id)
                raise

        self.on("send", told)

    def on_unsure(self, look: Callable[[str], Any]) -> None:
        """For the id of each question that was sent on an earlier visit, and not said to be taken. Answer as above."""

        async def told(event: GenericEventArguments) -> None:
            said = event.args if isinstance(event.args, list) else []
            for question_id in said[:_MOST_UNSURE]:
                if _is_id(question_id):
                    await look(question_id)

        self.on("unsure", told)

    def on_stop(self, stop: Callable[[], Any]) -> None:
        self.on("stop", lambda: stop(), args=[])

    def on_typing(self, typing: Callable[[], Any]) -> None:
        """At the first letter, and now and then while more follow."""
        self.on("typing", lambda: typing(), args=[])

    def on_unbranch(self, leave: Callable[[], Any]) -> None:
        """When the user does not want to begin a branch after all."""
        self.on("unbranch", lambda: leave(), args=[])

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

    def accepted(self, draft_key: str, address: str) -> None:
        """There is a conversation now, and where: what is typed from here on is kept under this name."""
        self.run_method("accepted", draft_key, address)

    def taken(self, question_id: str) -> None:
        """That question is in the database."""
        if question_id == self.question_id:
            self.question_id = None
        self.run_method("taken", question_id)

    def refused(self, question_id: str | None = None) -> None:
        """The text, of the last question if none is named, comes back into the box, which was emptied when it was sent."""
        question_id = question_id or self.question_id
        if question_id == self.question_id:
            self.question_id = None
        self.run_method("refused", question_id)

    def edit(self, message_id: str, text: str) -> None:
        """Puts a question that was asked into the box."""
        self.run_method("edit", message_id, text)


def _is_id(said: object) -> bool:
    return isinstance(said, str) and _ID.fullmatch(said) is not None
