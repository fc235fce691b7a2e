"""A question on its way from the composer into the database."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from nicegui import background_tasks, ui

from domain.errors import InvalidRequest, UniunError
from presentation.controllers.chat import ChatController
from presentation.web.chat_thread import written_outside
from presentation.web.composer import Composer
from presentation.web.live_answers import LiveAnswer
from presentation.web.notices import tell_error
from presentation.web.site import Site


def ask(
    site: Site,
    chat: ChatController,
    composer: Composer,
    text: str,
    editing: str | None,
    *,
    attach: Callable[[LiveAnswer], None],
    kept: Callable[[str], None],
) -> None:
    """Asks, or puts the question `editing` differently. The composer gives its text up only once it is in the database.

    `attach` shows the answer; `kept` is then told the id of the conversation. Both run on the page that asked.
    """
    question_id, client = composer.question_id or "", ui.context.client

    def begin() -> None:
        try:
            if not editing and site.answers.of(chat.conversation.id) is None and written_outside(chat.path):
                raise InvalidRequest(
                    "Another program is writing an answer here. Send this when it has ended."
                )
            if editing:
                live = site.answers.edit(chat, editing, text, question_id)
            else:
                live = site.answers.send(chat, text, question_id)
        except UniunError as error:
            composer.refused(question_id)
            tell_error(error)
            return
        follow(live)
        attach(live)

    def follow(live: LiveAnswer) -> None:
        def look(first: int) -> None:
            if not live.kept and not live.ended:
                return
            unwatch()
            with client:
                if live.kept:
                    take(live.conversation_id)
                else:
                    composer.refused(question_id)
                    tell_error(InvalidRequest(live.error or "The question could not be asked. Try again."))

        unwatch = live.watch(look)
        look(0)

    def take(conversation_id: str) -> None:
        chat.kept = chat.kept or chat.conversation.id == conversation_id
        composer.taken(question_id)
        kept(conversation_id)

    async def ask_once() -> None:
        """What was sent before may have come, and only the word that it had may have been lost."""
        with client:
            live, conversation_id = site.answers.of_question(question_id), None
            if live is None:
                try:
                    conversation_id = await chat.conversation_of(question_id)
                except UniunError as error:
                    composer.refused(question_id)
                    tell_error(error)
                    return
            if live is not None:
                follow(live)
            elif conversation_id is not None:
                take(conversation_id)
            else:
                begin()

    if composer.again:
        background_tasks.create(ask_once(), name="a question that was sent again")
    else:
        begin()


async def recall(site: Site, chat: ChatController, composer: Composer, question_id: str) -> str | None:
    """Takes back what was sent on an earlier visit and did not come; else the id of the conversation where it is."""
    live = site.answers.of_question(question_id)
    if live is not None:
        await _settled(live)
    with suppress(UniunError):  # while the database is away the browser asks again
        conversation_id = await chat.conversation_of(question_id)
        if conversation_id is None:
            composer.refused(question_id)
        else:
            composer.taken(question_id)
        return conversation_id
    return None


async def _settled(live: LiveAnswer) -> None:
    """Returns when its question is in the database, or will never be."""
    settled = asyncio.Event()
    unwatch = live.watch(lambda first: settled.set() if live.kept or live.ended else None)
    try:
        if not live.kept and not live.ended:
            await settled.wait()
    finally:
        unwatch()
