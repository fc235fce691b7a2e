"""The messages of a conversation on the screen, and the answer that is being written below them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nicegui import ui
from nicegui.element import Element

from domain.entities.conversation import ChatMessage, Citation, PathMessage
from domain.usecases.citations import cited, only_cites
from presentation.web.live_answers import LiveAnswer
from presentation.web.live_markdown import LiveMarkdown
from presentation.web.markdown import html_of
from presentation.web.page_words import page_words
from presentation.web.parts import button
from presentation.web.shell import plain
from presentation.web.waiting import OtherChat

_NEAR_PX = 400
"""A last message that grows by less than this in one step is followed by who is at its end."""
SHOWN = 30
"""Messages that are drawn at first, and that each click on "Show earlier" adds."""
OUTSIDE = "Another program is writing this answer, such as a chat in a terminal. What it writes appears here."
_ENDINGS = {
    "stopped": "Stopped. What there is of the answer is kept.",
    "failed": "The answer failed.",
}
_UNBEGUN = "Stopped before it began."
_ONLY_CITES = "The model wrote no answer. It only pointed to what it read:"


@dataclass(frozen=True)
class ThreadActions:
    """What the buttons of a message do; each is given the message."""

    retry: Callable[[ChatMessage], Any]
    edit: Callable[[ChatMessage], Any]
    branch: Callable[[ChatMessage], Any]
    sibling: Callable[[str], Any]
    """Given the id of another message at the same place."""
    halt: Callable[[str], Any]
    """Given the id of another conversation, whose answer this one waits for."""


class Thread:
    """Draws only what has changed since the last time."""

    def __init__(self, actions: ThreadActions) -> None:
        self._actions = actions
        self._rows: list[tuple[tuple[object, ...], Element]] = []
        self._path: Sequence[PathMessage] = ()
        self._live: LiveAnswer | None = None
        self._shown = SHOWN
        self._unwatch: Callable[[], object] = lambda: None
        self.words = ""
        self._other: OtherChat | None = None
        with (
            ui.element("div")
            .classes("u-thread")
            .props('tabindex=0 role=log aria-live=off aria-label="Messages"') as self.box
        ):
            self._earlier = ui.button("Show earlier messages", on_click=self._show_earlier).props(
                "flat no-caps"
            )
            self.greeting = ui.element("div").classes("u-greeting")
            """Seen while there is no message."""
            with self.greeting:
                with ui.element("h2"):
                    plain("What would you like to know?")
                with ui.element("p").classes("u-muted"):
                    plain("Answers come from your notes and say which ones. Nothing leaves this machine.")
            self._messages = ui.element("div").classes("u-messages")
            with ui.element("div").classes("u-row u-wrap u-goes-on") as self._goes_on:
                plain("The conversation goes on after this.")
                button("Show the rest", on_click=lambda: self._actions.sibling(self._path[-1].message.id))
            self._waiting = ui.element("div").classes("u-waiting u-wrap")
            with self._waiting:
                with ui.element("span").classes("u-row").props("aria-hidden=true"):
                    ui.element("span").classes("u-pulse")
                    self._waiting_text = plain("")
                self._other_chat = ui.element("span").classes("u-row u-other-chat")
        self._waiting.set_visibility(False)
        ui.context.client.on_delete(lambda: self._unwatch())

    # -- what is shown

    def show(self, path: Sequence[PathMessage], live: LiveAnswer | None) -> None:
        """The path, and the answer that is being written at its end or beside it."""
        if live is not self._live:
            self._unwatch()
            self._live, self._shown = live, min(self._shown, SHOWN)
        self._path = path
        rows = self._wanted(path, live)
        same = 0
        for (key, _), (other, _) in zip(self._rows, rows, strict=False):
            if key != other:
                break
            same += 1
        grown = same == len(rows) - 1 == len(self._rows) - 1 and rows[same][0][:1] == self._rows[same][0][:1]
        for _, element in self._rows[same:]:
            self._messages.remove(element)
        del self._rows[same:]
        with self._messages:
            for key, draw in rows[same:]:
                self._rows.append((key, draw()))
        self.greeting.set_visibility(not rows)
        self._goes_on.set_visibility(live is None and bool(path) and path[-1].goes_on)
        if same < len(rows):
            self._to_the_end(unless_away=grown)

    def say(self, words: str, other: OtherChat | None = None) -> None:
        """Why nothing comes yet; nothing when empty. `other`: the chat that this one waits for."""
        if other != self._other:
            self._other = other
            self._other_chat.clear()
            if other is not None:
                with self._other_chat:
                    self._ways_out(other)
        if words != self.words:
            began, self.words = not self.words, words
            self._waiting.set_visibility(bool(words))
            self._waiting_text.text = words
            if began:
                self._to_the_end(unless_away=True)

    def _ways_out(self, other: OtherChat) -> None:
        ui.link("Go to that chat", f"/c/{other.conversation_id}")
        if other.ours:
            with ui.element("button").props("type=button").classes("u-link") as halt:
                plain("Stop its answer")
            halt.on("click", lambda: self._actions.halt(other.conversation_id), args=[])

    def _show_earlier(self) -> None:
        self._shown += SHOWN
        for _, element in self._rows:
            self._messages.remove(element)
        self._rows.clear()
        self.show(self._path, self._live)

    def _to_the_end(self, *, unless_away: bool) -> None:
        """`unless_away`: whoever has scrolled up to read stays there."""
        near = f"box.scrollTop + box.clientHeight > box.scrollHeight - {_NEAR_PX}" if unless_away else "true"
        # Not the slot's page: what was clicked may just have been removed.
        self.box.client.run_javascript(
            f"{{ const box = getHtmlElement({self.box.id}); if (box && {near}) box.scrollTop = box.scrollHeight; }}"
        )

    # -- rows

    def _wanted(
        self, path: Sequence[PathMessage], live: LiveAnswer | None
    ) -> list[tuple[tuple[object, ...], Callable[[], Element]]]:
        if live is not None:
            path = _up_to(path, live)
        hidden = max(0, len(path) - self._shown)
        self._earlier.set_visibility(hidden > 0)
        rows: list[tuple[tuple[object, ...], Callable[[], Element]]] = [
            (_key(shown), lambda shown=shown: self._message(shown))  # type: ignore[misc]
            for shown in path[hidden:]
        ]
        if live is not None:
            if live.question is not None:
                question = live.question
                rows.append((("asked", id(live)), lambda: self._asked(question)))
            rows.append((("live", id(live)), lambda: self._growing(live)))
        return rows

    def _message(self, shown: PathMessage) -> Element:
        message = shown.message
        if message.role == "user":
            with _article("You", "u-mine") as article:
                _bubble(message.content)
                with _buttons():
                    self._siblings(shown)
                    _button("edit", "Ask differently", lambda: self._actions.edit(message))
                    _button("call_split", "Go on from here", lambda: self._actions.branch(message))
            return article
        with _article("Shiv", "u-answer") as article:
            _thinking(message.thinking)
            if message.state != "streaming" and only_cites(message.content, message.citations):
                plain(_ONLY_CITES).classes("u-muted")
            elif message.content:
                LiveMarkdown([html_of(message.content, _sources(message.citations))])
            if message.state == "streaming":
                with ui.element("div").classes("u-waiting"):
                    ui.element("span").classes("u-pulse")
                    plain(OUTSIDE)
                _buttons()
                return article
            if message.state != "complete":
                self._ending(message)
            _source_cards(message)
            with _buttons():
                self._siblings(shown)
                if message.content:
                    _copy_button(message.content)
                if message.state != "failed" and not _unbegun(message):
                    _button("refresh", "Answer again", lambda: self._actions.retry(message))
                if not _unbegun(message):
                    _button("call_split", "Go on from here", lambda: self._actions.branch(message))
        return article

    def _ending(self, message: ChatMessage) -> None:
        """Why there is no more of it; after a failure also what can be done."""
        failed, unbegun = message.state == "failed", _unbegun(message)
        how = _UNBEGUN if unbegun else _ENDINGS[message.state]
        with ui.element("div").classes(f"u-ending u-row u-wrap {'u-banner u-bad' if failed else ''}"):
            words = page_words(message.error or "")
            plain(" ".join(filter(None, (how, words)))).classes("u-grow" if failed else "")
            if failed and "models page" in words:
                ui.link("Open the models page", "/models")
            elif failed:
                ui.link("See what waits", "/scheduler")
            if failed or unbegun:
                button("Try again", on_click=lambda: self._actions.retry(message))

    def _siblings(self, shown: PathMessage) -> None:
        """Where the path could have gone otherwise."""
        if len(shown.siblings) < 2:
            return
        at = shown.siblings.index(shown.message.id)
        _button(
            "chevron_left", "The one before", lambda: self._actions.sibling(shown.siblings[at - 1])
        ).props("disabled" if at == 0 else "")
        plain(f"{at + 1} / {len(shown.siblings)}").classes("u-small u-muted u-number")
        last = at + 1 == len(shown.siblings)
        _button("chevron_right", "The next one", lambda: self._actions.sibling(shown.siblings[at + 1])).props(
            "disabled" if last else ""
        )

    def _asked(self, question: str) -> Element:
        with _article("You", "u-mine") as article:
            _bubble(question)
            _buttons()
        return article

    def _growing(self, live: LiveAnswer) -> Element:
        with _article("Shiv", "u-answer u-growing") as article:
            thinking = _Thinking(live)
            text = LiveMarkdown(live.markdown.blocks)
            # The room of what comes at its end.
            sources = ui.element("div").classes("u-given")
            _buttons()

        def given() -> None:
            if sources.visible != (live.begun is not None and bool(live.begun.citations)):
                sources.set_visibility(not sources.visible)
                self._to_the_end(unless_away=True)

        def grown(first: int) -> None:
            given()
            thinking.update()
            if first < len(live.markdown.blocks):
                text.patch(first, live.markdown.blocks[first:])

        given()
        self._unwatch = live.watch(grown)
        return article


class _Thinking:
    """The folded part of an answer that is being written."""

    def __init__(self, live: LiveAnswer) -> None:
        self._live = live
        self._length = 0
        with ui.element("details").classes("u-thinking") as self._details:
            with ui.element("summary"):
                plain("Thinking")
            self._text = plain("").classes("u-thinking-text")
        self._details.set_visibility(False)
        self.update()

    def update(self) -> None:
        if len(self._live.thinking) != self._length:
            self._length = len(self._live.thinking)
            self._text.text = self._live.thinking
            self._details.set_visibility(True)


def written_outside(path: Sequence[PathMessage]) -> bool:
    """Whether another program writes at the end of what is shown; for one where no answer of this program is shown."""
    return bool(path) and path[-1].message.state == "streaming"


def _up_to(path: Sequence[PathMessage], live: LiveAnswer) -> Sequence[PathMessage]:
    """Without what the live answer shows itself, and without the branch that it leaves."""
    ids = [shown.message.id for shown in path]
    if live.after is None:
        return ()
    return path[: ids.index(live.after) + 1] if live.after in ids else path


def _unbegun(message: ChatMessage) -> bool:
    """Whether it was stopped, or its program ended, before there was a word of it."""
    return message.state == "stopped" and not message.content and not message.thinking


def _key(shown: PathMessage) -> tuple[object, ...]:
    message = shown.message
    return (message.id, message.state, len(message.content), shown.siblings)


def _article(who: str, classes: str) -> Element:
    return ui.element("article").props(f'aria-label="{who}"').classes(f"u-message {classes}")


def _bubble(text: str) -> None:
    with ui.element("div").classes("u-bubble"):
        plain(text)


def _thinking(text: str) -> None:
    if text:
        with ui.element("details").classes("u-thinking"):
            with ui.element("summary"):
                plain("Thinking")
            plain(text).classes("u-thinking-text")


def _source_cards(message: ChatMessage) -> None:
    """What it cites; folded away, what it was given besides."""
    if not message.citations:
        return
    named = cited(message.content, message.citations)
    besides = [citation for citation in message.citations if citation not in named]
    with ui.element("div").classes("u-given"):
        if named:
            _cards("Sources", named, numbered=True)
        if besides:
            with ui.element("details").classes("u-thinking"):
                with ui.element("summary"):
                    plain("Looked at, not cited")
                _cards("Looked at, not cited", besides, numbered=False)


def _cards(label: str, citations: Sequence[Citation], *, numbered: bool) -> None:
    with ui.element("ul").classes("u-sources").props(f'aria-label="{label}"'):
        for citation in citations:
            with (
                ui.element("li"),
                ui.element("a").classes("u-source").props(f'href="/notes/{citation.note_id}"') as card,
            ):
                if numbered:
                    plain(str(citation.number)).classes("u-cite")
                plain(citation.title or "Untitled").classes("u-ellipsis")
                if citation.written_by is not None:
                    by = (
                        f"written by Gana {citation.written_by}"
                        if citation.written_by
                        else "written by a Gana"
                    )
                    card.classes("u-by-gana")
                    plain(by).classes("u-small u-muted u-ellipsis")


def _buttons() -> Element:
    return ui.element("div").classes("u-message-buttons")


def _button(icon: str, label: str, action: Callable[[], Any]) -> Element:
    with (
        ui.element("button")
        .props(f'type=button aria-label="{label}" title="{label}"')
        .classes("u-icon-button") as button
    ):
        ui.icon(icon)
    return button.on("click", lambda: action(), args=[])


def _copy_button(text: str) -> Element:
    with (
        ui.element("button")
        .props('type=button aria-label="Copy" title="Copy"')
        .classes("u-icon-button") as button
    ):
        ui.icon("content_copy")
    return button.on("click", lambda: ui.clipboard.write(text), args=[])


def _sources(citations: Sequence[Citation]) -> dict[int, str]:
    return {citation.number: f"/notes/{citation.note_id}" for citation in citations}
