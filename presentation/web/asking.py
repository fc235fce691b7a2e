"""A question on its way from the composer into the database."""

from collections.abc import Callable

from nicegui import ui

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
    try:
        if not editing and site.answers.of(chat.conversation.id) is None and written_outside(chat.path):
            raise InvalidRequest("Another program is writing an answer here. Send this when it has ended.")
        live = site.answers.edit(chat, editing, text) if editing else site.answers.send(chat, text)
    except UniunError as error:
        composer.refused()
        tell_error(error)
        return
    client = ui.context.client

    def look(first: int) -> None:
        if live.begun is None and not live.ended:
            return
        unwatch()
        with client:
            if live.begun is not None:
                kept(live.conversation_id)
            else:
                composer.refused()
                tell_error(InvalidRequest(live.error or "The question could not be asked. Try again."))

    unwatch = live.watch(look)
    attach(live)
