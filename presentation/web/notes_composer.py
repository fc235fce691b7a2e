"""The chat beside the editor: it knows the draft, and its answers can go into it."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlencode

from nicegui import ui

from domain.entities.conversation import ChatMessage, Draft
from domain.entities.llm import LlmTaskKind
from domain.errors import ConversationNotFound, InvalidRequest
from presentation.web.asking import ask, recall
from presentation.web.branching import Branching
from presentation.web.chat_thread import Thread, ThreadActions, written_outside
from presentation.web.composer import Composer
from presentation.web.glance import glance
from presentation.web.live_answers import LiveAnswer
from presentation.web.notes_field import NoteField, Standing
from presentation.web.notices import tell, tell_error
from presentation.web.outside import Outside
from presentation.web.parts import button, link
from presentation.web.read_ahead import ReadAhead
from presentation.web.shell import plain
from presentation.web.site import Site
from presentation.web.waiting import OtherChats, waiting_words

LOOK_S = 0.2


class ComposerPanel:
    """One conversation about one note."""

    def __init__(
        self,
        site: Site,
        note_id: str,
        field: NoteField,
        is_kept: Callable[[], bool],
        on_found: Callable[[], object],
    ) -> None:
        """`is_kept` tells whether the note is in the database yet. `on_found`: an earlier visit's conversation is back."""
        self._site = site
        self._is_kept = is_kept
        self._on_found = on_found
        self._note_id = note_id
        self._field = field
        self._chat = site.faces.composer_chat(note_id, None)
        self._ahead = ReadAhead(self._chat, site.now)
        self._outside = Outside(site, self._chat, lambda: self._live is None)
        self._live: LiveAnswer | None = None
        self._others = OtherChats(site)
        self._turn = asyncio.Lock()
        """An older reading of the conversation must not end after a newer."""
        ui.context.client.on_delete(self._ahead.stop)

    async def draw(self, conversation_id: str) -> None:
        """The conversation named, if there is one; else a new one."""
        await self._begin(conversation_id)
        with ui.element("div").classes("u-row u-small u-panel-head") as self._head:
            with ui.element("button").props("type=button").classes("u-link") as another:
                plain("New chat")
            another.on("click", self._begin_another, args=[])
            self._page = link("Open as a page", f"/c/{self._chat.conversation.id}")
        self._head.set_visibility(bool(self._chat.path))
        self._thread = Thread(
            ThreadActions(
                retry=self._retry,
                edit=self._edit,
                branch=lambda message: self._branching.begin(message),
                sibling=self._sibling,
                halt=self._site.answers.stop,
            )
        )
        with ui.element("div").classes("u-row u-wrap u-into-note") as self._into:
            button("Insert into note", on_click=lambda: self._put(replace=False))
            button("Replace selection", on_click=lambda: self._put(replace=True))
        self._spoken = plain("").classes("u-hidden").props("role=status aria-live=polite")
        self._composer = Composer(f"note/{self._note_id}", "Ask about this note")
        self._composer.on_send(self._send)
        self._composer.on_unsure(self._unsure)
        self._branching = Branching(self._site, self._chat, self._composer, self._nothing_runs)
        self._composer.on_typing(self._typing)
        self._composer.on_stop(lambda: self._site.answers.stop(self._chat.conversation.id))
        self._timer = ui.timer(LOOK_S, self._look, active=False)
        await self._refresh()
        self._site.changes.on("conversations", self._refresh)
        self._outside.watch(self._refresh)

    def look_at(self) -> None:
        """The user turned to it."""
        self._site.enter_surface(LlmTaskKind.CHAT, self._chat.conversation.id)
        self._composer.run_method("grow")  # it could not measure itself while it was hidden

    # -- what is shown

    async def _begin(self, conversation_id: str) -> None:
        try:
            if conversation_id:
                await self._chat.open(conversation_id)
                return
        except ConversationNotFound:
            tell("The conversation of this address is gone; here is a new one.")
        await self._chat.begin()

    async def _refresh(self) -> None:
        async with self._turn:
            await self._read()

    async def _read(self) -> None:
        live = self._site.answers.of(self._chat.conversation.id)
        if self._chat.kept or (live is not None and live.kept):
            try:
                await self._outside.noted()
                await self._chat.open(self._chat.conversation.id)
            except ConversationNotFound:
                tell("This conversation was deleted elsewhere; here is a new one.")
                await self._chat.begin()
        self._attach(self._site.answers.of(self._chat.conversation.id))

    def _attach(self, live: LiveAnswer | None) -> None:
        ended, self._live = self._live if live is not self._live else None, live
        self._thread.show(self._chat.path, live)
        self._head.set_visibility(bool(self._chat.path))
        self._page.props["href"] = f"/c/{self._chat.conversation.id}"
        self._composer.busy(live is not None)
        outside = live is None and written_outside(self._chat.path)
        self._composer.wait(outside)
        self._composer.branch(live is None and self._branching.begins)
        self._timer.active = live is not None
        answered = any(
            shown.message.role == "assistant" and shown.message.content for shown in self._chat.path
        )
        self._into.set_visibility(answered and live is None and not outside)
        if live is None:
            self._thread.say("")
        if ended is not None and ended.ended:
            self._spoken.text = "The answer is there." if ended.text else "The answer ended."

    async def _look(self) -> None:
        live = self._live
        if live is None:
            return
        snapshot = glance(self._site)
        other = await self._others.before(live, snapshot)
        if live is self._live:  # else it ended while a title was looked up
            waited_s = self._site.now() - live.asked_at
            self._thread.say(waiting_words(live, snapshot, waited_s, other), other)

    # -- what the user does

    async def _typing(self) -> None:
        if self._live is None:
            self._chat.draft = _draft(await self._field.current())
            self._ahead.typed()

    async def _send(self, text: str, editing: str | None) -> None:
        self._ahead.stop()
        try:
            self._chat.draft = _draft(await self._field.current())
        except TimeoutError:
            self._composer.refused()
            tell_error(InvalidRequest("The editor did not say what is in it. Send the question once more."))
            return
        ask(self._site, self._chat, self._composer, text, editing, attach=self._attach, kept=self._kept)

    async def _unsure(self, question_id: str) -> None:
        conversation_id = await recall(self._site, self._chat, self._composer, question_id)
        if conversation_id is None or self._chat.kept:
            return
        async with self._turn:
            await self._chat.open(conversation_id)
            await self._read()
        self._kept(conversation_id)
        self._on_found()

    def _kept(self, conversation_id: str) -> None:
        if conversation_id == self._chat.conversation.id:  # else another has been begun meanwhile
            self._put_address(chat=conversation_id)

    def _put_address(self, **query: str) -> None:
        """A note that is not kept yet goes on being begun."""
        if not self._is_kept():
            query["begin"] = "1"
        address = f"/notes/{self._note_id}" + (f"?{urlencode(query)}" if query else "")
        self._composer.accepted(f"note/{self._note_id}", address)
        ui.navigate.history.replace(address)

    async def _begin_another(self) -> None:
        """An answer that is on its way in the one before comes to its end there."""
        self._ahead.stop()
        async with self._turn:
            await self._chat.begin()
            self._attach(None)
        self._put_address()
        self.look_at()
        self._composer.focus()

    async def _put(self, *, replace: bool) -> None:
        """The last answer into the note: in the place of what is selected, or at the cursor. Where that stands at the end,
        or nowhere yet, it becomes a paragraph of its own."""
        standing = await self._field.current()
        start, end = standing.selection
        if replace and start == end:
            tell("Select the words in the note that the answer shall replace.")
            return
        draft = _draft(standing)
        if not replace:
            within = standing.placed and standing.text[end:].strip()
            draft = draft.model_copy(update={"selection": (end, end) if within else None})
        self._chat.draft = draft
        new = self._chat.with_proposal()
        cursor = new.selection[1] if new.selection is not None else len(new.text)
        if not await self._field.apply(standing.serial, new.text, cursor):
            tell("You were typing at that moment; try once more.")

    async def _retry(self, message: ChatMessage) -> None:
        self._chat.draft = _draft(await self._field.current())
        self._attach(self._site.answers.retry(self._chat, message.id))

    def _edit(self, message: ChatMessage) -> None:
        self._composer.edit(message.id, message.content)

    async def _sibling(self, message_id: str) -> None:
        self._nothing_runs()
        await self._chat.show_sibling(message_id)
        self._site.changes.tell("conversations")

    def _nothing_runs(self) -> None:
        if self._live is not None:
            raise InvalidRequest("An answer is on its way. Wait for it, or stop it.")


def _draft(standing: Standing) -> Draft:
    return Draft(title=standing.title, text=standing.text, selection=standing.selection)
