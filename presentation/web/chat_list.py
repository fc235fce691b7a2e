"""The conversations: found, opened, begun."""

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from domain.entities.conversation import Conversation
from presentation.controllers.chat import ChatController
from presentation.web.rows import Row, Rows
from presentation.web.shell import plain

PAGE = 40


class ConversationList:
    """Beside the chat; on a phone in front of it."""

    def __init__(self, chat: ChatController) -> None:
        self._chat = chat
        self._text = ""
        self._limit = PAGE
        self._current = ""
        self._round = 0
        """Of the reading that was begun last; what an earlier one finds is thrown away."""
        with ui.element("aside").classes("u-chat-list").props('aria-label="Conversations"'):
            with ui.element("div").classes("u-chat-list-head"):
                with ui.element("a").classes("u-new-chat").props('href="/"'):
                    ui.icon("add")
                    plain("New chat")
                with (
                    ui.element("button")
                    .classes("u-icon-button u-phone-only")
                    .props('type=button aria-label="Close the list"')
                    .on("click", js_handler=_TOGGLE)
                ):
                    ui.icon("close")
            (
                ui.element("input")
                .props(
                    'type=search placeholder="Search" aria-label="Search conversations" data-search maxlength=200'
                )
                .classes("u-input")
                .on(
                    "input",
                    self._search,
                    throttle=0.25,
                    leading_events=False,
                    js_handler="(e) => emit(e.target.value)",
                )
            )
            self._rows = Rows(ui.element("ul").classes("u-conversations"))
            self._more = ui.button("Show more", on_click=self._show_more).props("flat no-caps dense")
            self._more.set_visibility(False)
            self._none = ui.element("p").classes("u-muted u-small u-none")
            with self._none:
                self._none_text = plain("")

    async def refresh(self, current: str) -> None:
        """Reads them again; draws only what has changed."""
        self._current = current
        self._round += 1
        this_round = self._round
        found = await self._chat.conversations(self._text, limit=self._limit + 1)
        if this_round != self._round:
            return
        self._more.set_visibility(len(found) > self._limit)
        self._none.set_visibility(not found)
        self._none_text.text = "Nothing found." if self._text else "Your conversations will stand here."
        self._rows.show(_row(one, is_current=one.id == current) for one in found[: self._limit])

    async def _search(self, event: GenericEventArguments) -> None:
        self._text = str(event.args or "")[:200]
        self._limit = PAGE
        await self.refresh(self._current)

    async def _show_more(self) -> None:
        self._limit += PAGE
        await self.refresh(self._current)


def _row(conversation: Conversation, *, is_current: bool) -> Row:
    def draw() -> Element:
        with ui.element("li") as row, ui.element("a").props(f'href="/c/{conversation.id}"') as link:
            plain(conversation.title).classes("u-ellipsis")
        if is_current:
            link.props("aria-current=page")
        return row

    return (conversation.id, conversation.title, is_current), draw


_TOGGLE = "() => document.body.classList.toggle('u-show-list')"


def list_button() -> None:
    """Shows the list on a phone."""
    with (
        ui.element("button")
        .classes("u-icon-button u-phone-only")
        .props('type=button aria-label="Conversations" title="Conversations"')
        .on("click", js_handler=_TOGGLE)
    ):
        ui.icon("menu")
