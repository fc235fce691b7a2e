"""What other programs write into a conversation that is shown: a terminal may answer in it."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from domain.errors import ConversationNotFound
from presentation.controllers.chat import ChatController
from presentation.web.site import Site

OUTSIDE_S = 1.0
"""How often a page that can be seen asks. What is written on a page is told without asking."""


class Outside:
    """Asks for the version of the conversation that a page shows, and has it drawn anew when that is another one."""

    def __init__(self, site: Site, chat: ChatController, idle: Callable[[], bool]) -> None:
        """It does not ask while the page is not `idle`, as under an answer of its own."""
        self._surfaces = site.surfaces
        self._chat = chat
        self._idle = idle
        self._version = ""

    async def noted(self) -> None:
        """What is about to be drawn is as new as this. Raises `ConversationNotFound`."""
        self._version = await self._chat.version()

    def watch(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Until the page is closed. `refresh` also finds out that the conversation is gone."""
        page = ui.context.client.id

        async def look() -> None:
            if not self._chat.path or not self._idle() or not self._surfaces.seen(page):
                return
            try:
                # That a writer died changes nothing in what it wrote: who reads it finds out.
                writing = self._chat.path[-1].message.state == "streaming"
                if not writing and await self._chat.version() == self._version:
                    return
            except ConversationNotFound:
                pass
            await refresh()

        ui.timer(OUTSIDE_S, look)
