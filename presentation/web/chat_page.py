"""Shiv, the chat: one conversation, with the others beside it."""

import asyncio
from collections.abc import Sequence

from nicegui import ui

from domain.entities.conversation import ChatMessage, PathMessage
from domain.entities.llm import LlmTaskKind
from domain.errors import ConversationNotFound, InvalidRequest
from presentation.controllers.chat import ChatController
from presentation.web.asking import ask, recall
from presentation.web.branching import Branching
from presentation.web.chat_head import ChatHead
from presentation.web.chat_list import ConversationList
from presentation.web.chat_thread import Thread, ThreadActions, written_outside
from presentation.web.composer import Composer
from presentation.web.glance import glance
from presentation.web.live_answers import LiveAnswer
from presentation.web.notices import tell_error
from presentation.web.outside import Outside
from presentation.web.read_ahead import ReadAhead
from presentation.web.shell import empty, plain
from presentation.web.site import Site
from presentation.web.waiting import OtherChats, waiting_words
from presentation.web.welcome import greet

LOOK_S = 0.2
"""How often the words under a waiting answer are put right."""
_SPOKEN = 2000


async def page_chat(site: Site, conversation_id: str | None = None) -> None:
    """The conversation named, or a new one."""
    chat = site.faces.chat(None, None)
    if conversation_id is None:
        await chat.begin()
    else:
        await chat.open(conversation_id)
    page = ChatPage(site, chat)
    await page.draw()


class ChatPage:
    """Wires the parts of the page to the controller and to the answers that are being written."""

    def __init__(self, site: Site, chat: ChatController) -> None:
        self._site = site
        self._chat = chat
        self._live: LiveAnswer | None = None
        self._elsewhere = False
        """Whether it is being written on a branch that is not shown."""
        self._ahead = ReadAhead(chat, site.now)
        self._others = OtherChats(site)
        self._deleted = False
        self._told = ""
        """Of the answer that is on its way, to who listens."""
        self._outside = Outside(site, chat, lambda: self._live is None and not self._deleted)
        self._turn = asyncio.Lock()
        """An older reading of the conversation must not end after a newer."""

    async def draw(self) -> None:
        chat, site = self._chat, self._site
        with ui.element("div").classes("u-chat"):
            self._list = ConversationList(chat)
            with ui.element("section").classes("u-chat-main").props('aria-label="Conversation"'):
                self._head = ChatHead(site, chat)
                self._thread = Thread(
                    ThreadActions(
                        retry=self._retry,
                        edit=self._edit,
                        branch=lambda message: self._branching.begin(message),
                        sibling=self._sibling,
                        halt=site.answers.stop,
                    )
                )
                self._spoken = plain("").classes("u-hidden").props("role=status aria-live=polite")
                draft_key = chat.conversation.id if chat.path else "new"
                self._composer = Composer(draft_key, where=", under “Branches”")
                self._composer.on_send(self._send)
                self._composer.on_unsure(self._unsure)
                self._branching = Branching(site, chat, self._composer, self._nothing_begins)
                self._composer.on_typing(self._typing)
                self._composer.on_stop(lambda: site.answers.stop(chat.conversation.id))
                await self._head.draw_choices()
        await self._refresh()
        if not chat.path:
            await greet(site, self._thread.greeting)
        site.changes.on("conversations", self._refresh)
        client = ui.context.client
        client.on_disconnect(self._ahead.stop)
        client.on_delete(self._ahead.stop)
        site.enter_surface(LlmTaskKind.CHAT, chat.conversation.id)
        # Last: a timer waits for the connection, and with it the page would be sent as far as it is.
        ui.timer(LOOK_S, self._look)
        self._outside.watch(self._refresh)

    # -- what is shown

    async def _refresh(self) -> None:
        """Everything that this or another page, or the answer itself, may have changed."""
        async with self._turn:
            await self._read()

    async def _read(self) -> None:
        if self._deleted:
            return
        chat = self._chat
        live = self._site.answers.of(chat.conversation.id)
        if chat.kept or (live is not None and live.kept):
            try:
                await self._outside.noted()
                await chat.open(chat.conversation.id)
            except ConversationNotFound:
                self._was_deleted()
                return
        self._attach(self._site.answers.of(chat.conversation.id))
        self._head.show()
        await self._list.refresh(chat.conversation.id)

    def _attach(self, live: LiveAnswer | None) -> None:
        ended, self._live = self._live if live is not self._live else None, live
        self._elsewhere = live is not None and not _shows(self._chat.path, live)
        self._thread.show(self._chat.path, None if self._elsewhere else live)
        self._composer.busy(live is not None)
        self._composer.wait(live is None and written_outside(self._chat.path))
        self._composer.branch((live is None or self._elsewhere) and self._branching.begins)
        if live is None:
            self._thread.say("")
            self._told = ""
        if ended is not None and ended.ended:
            self._spoken.text = f"Shiv: {ended.text[:_SPOKEN]}" if ended.text else "The answer ended."
            answered = any(shown.message.role == "assistant" for shown in self._chat.path[-1:])
            if ended.error is not None and not answered:
                tell_error(InvalidRequest(ended.error))

    async def _look(self) -> None:
        live = self._live
        if live is None:
            return
        snapshot = glance(self._site)
        other = await self._others.before(live, snapshot)
        if live is not self._live:  # it ended while a title was looked up
            return
        words = waiting_words(live, snapshot, self._site.now() - live.asked_at, other)
        if self._elsewhere:
            words, other = "An answer is being written on another branch.", None
        kind = words.partition("… ")[0].rstrip("…") or "Shiv is writing the answer"
        if kind != self._told:
            self._told = self._spoken.text = kind
        self._thread.say(words, other)

    def _was_deleted(self) -> None:
        self._deleted = True
        self._composer.delete()
        self._thread.box.clear()
        with (
            self._thread.box,
            empty("delete_outline", "This conversation was deleted", "It was deleted on another page."),
        ):
            ui.link("Begin a new one", "/")

    # -- what the user does

    def _typing(self) -> None:
        if self._live is None and not self._deleted:
            self._ahead.typed()

    def _send(self, text: str, editing: str | None) -> None:
        self._ahead.stop()
        ask(self._site, self._chat, self._composer, text, editing, attach=self._attach, kept=self._kept)

    async def _unsure(self, question_id: str) -> None:
        conversation_id = await recall(self._site, self._chat, self._composer, question_id)
        if conversation_id is not None and not self._chat.kept:
            ui.navigate.to(f"/c/{conversation_id}")

    def _kept(self, conversation_id: str) -> None:
        address = f"/c/{conversation_id}"
        self._composer.accepted(conversation_id, address)
        ui.run_javascript(f"history.replaceState(null, '', '{address}')")

    def _retry(self, message: ChatMessage) -> None:
        self._attach(self._site.answers.retry(self._chat, message.id))

    def _edit(self, message: ChatMessage) -> None:
        self._composer.edit(message.id, message.content)

    async def _sibling(self, message_id: str) -> None:
        self._nothing_begins()
        await self._chat.show_sibling(message_id)
        self._site.changes.tell("conversations")

    def _nothing_begins(self) -> None:
        if self._live is not None and self._live.begun is None:
            raise InvalidRequest("The answer is about to begin. Wait for it, or stop it.")


def _shows(path: Sequence[PathMessage], live: LiveAnswer) -> bool:
    """One that has not begun is not in the database yet; it is where it was asked for."""
    return live.begun is None or any(shown.message.id == live.begun.answer_id for shown in path)
