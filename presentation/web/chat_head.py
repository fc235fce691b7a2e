"""Above a conversation: its title, what it draws on, which model answers, its branches, its end."""

import html
from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from presentation.controllers.chat import ChatController
from presentation.web.chat_list import list_button
from presentation.web.chat_tree import TO_THE_END, draw_tree
from presentation.web.shell import plain
from presentation.web.site import Site

Choice = tuple[str, str]
"""Value and label."""


class ChatHead:
    """Drawn once; `show` puts it right."""

    def __init__(self, site: Site, chat: ChatController) -> None:
        self._site = site
        self._chat = chat
        with ui.element("header").classes("u-chat-head"):
            list_button()
            with ui.element("h1").classes("u-ellipsis u-grow"):
                self._title = plain("")
            with (
                ui.button(icon="more_vert", color=None)
                .props('flat round dense aria-label="More about this conversation"')
                .classes("u-more") as self._more,
                ui.menu(),
            ):
                for label, action in (
                    ("Branches", self._branches),
                    ("Rename", self._rename),
                    ("Delete", self._delete),
                ):
                    ui.menu_item(label, action).props("role=menuitem")

    async def draw_choices(self) -> None:
        """What the next answer draws on, and which model writes it."""
        with ui.element("div").classes("u-choices"):
            self._manas = _select("Notes to draw on", self._use_manas)
            self._model = _select("Model", self._use_model)
        faces = self._site.faces
        shelf = faces.models.shelf()
        models = [("", f"Default: {shelf.default}")] + [(one.name, one.name) for one in shelf.installed]
        manases = [("", "All notes")] + [(one.id, one.name) for one in await faces.manases.list()]
        conversation = self._chat.conversation
        _choices(self._model, models, conversation.model or "")
        _choices(self._manas, manases, conversation.manas_id or "")

    def show(self) -> None:
        conversation = self._chat.conversation
        self._title.text = conversation.title
        self._more.set_visibility(bool(self._chat.path))
        ui.page_title(f"{conversation.title if self._chat.path else 'Chat'} · UNIUN")

    async def _use_model(self, value: str) -> None:
        await self._chat.use_model(value or None)

    async def _use_manas(self, value: str) -> None:
        await self._chat.use_manas(value or None)

    async def _branches(self) -> None:
        messages = await self._chat.tree()
        path = {shown.message.id for shown in self._chat.path}

        async def go(message_id: str) -> None:
            dialog.close()
            await self._chat.show_sibling(message_id)
            self._site.changes.tell("conversations")

        with ui.dialog() as dialog, ui.card().classes("u-tree-card"):
            _dialog_title(dialog, "Branches")
            draw_tree(messages, path, go)
        dialog.on("show", js_handler=TO_THE_END)
        _once(dialog)

    def _rename(self) -> None:
        async def rename() -> None:
            dialog.close()
            await self._chat.rename(title.value or "")
            self._site.changes.tell("conversations")

        with ui.dialog() as dialog, ui.card().classes("u-dialog"):
            _dialog_title(dialog, "Rename the conversation")
            title = ui.input("Title", value=self._chat.conversation.title).props(
                "outlined autofocus maxlength=200"
            )
            title.classes("u-grow").on("keydown.enter", rename)
            with ui.element("div").classes("u-row u-end"):
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
                ui.button("Rename", on_click=rename).props("unelevated no-caps")
        _once(dialog)

    def _delete(self) -> None:
        async def delete() -> None:
            dialog.close()
            conversation = self._chat.conversation.id
            self._site.answers.stop(conversation)
            await self._chat.delete(conversation)
            ui.navigate.to("/")
            self._site.changes.tell("conversations")

        with ui.dialog() as dialog, ui.card().classes("u-dialog"):
            _dialog_title(dialog, "Delete this conversation?")
            with ui.element("p"):
                plain(
                    f"“{self._chat.conversation.title}” and everything said in it goes for good. Your notes stay."
                )
            with ui.element("div").classes("u-row u-end"):
                ui.button("Keep it", on_click=dialog.close).props("flat no-caps autofocus")
                ui.button("Delete", on_click=delete).props("unelevated no-caps color=negative")
        _once(dialog)


def _dialog_title(dialog: ui.dialog, title: str) -> None:
    dialog.props(f'aria-label="{title}"')
    with ui.element("h2"):
        plain(title)


def _once(dialog: ui.dialog) -> None:
    dialog.on("hide", dialog.delete)
    dialog.open()


def _select(label: str, choose: Callable[[str], Any]) -> Element:
    async def chosen(event: GenericEventArguments) -> None:
        await choose(str(event.args or ""))

    return (
        ui.element("select")
        .classes("u-select")
        .props(f'aria-label="{label}" title="{label}"')
        .on("change", chosen, js_handler="(e) => emit(e.target.value)")
    )


def _choices(select: Element, choices: Sequence[Choice], chosen: str) -> None:
    select.clear()
    with select:
        for value, label in choices:
            option = ui.element("option").props(f'value="{html.escape(value)}"')
            if value == chosen:
                option.props("selected")
            with option:
                plain(label)
