"""While the user types, what was said so far is read: sending then costs only the new text."""

import asyncio
from collections.abc import Callable

from domain.errors import UniunError
from presentation.controllers.chat import ChatController

AGAIN_S = 60.0
"""What was read ahead is taken to lie ready for so long; reading it again would stop other work for nothing."""


class ReadAhead:
    """At most one at a time. What goes wrong is told when the question is sent, not here."""

    def __init__(self, chat: ChatController, now: Callable[[], float]) -> None:
        self._chat = chat
        self._now = now
        self._task: asyncio.Task[None] | None = None
        self._ready: tuple[object, float] | None = None

    def typed(self) -> None:
        """The user writes at this moment."""
        asked = self._asked()
        ready = self._ready is not None and self._ready[0] == asked
        if ready and self._ready is not None and self._now() < self._ready[1] + AGAIN_S:
            return
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read(asked))

    def stop(self) -> None:
        """The question is sent, or the user goes."""
        if self._task is not None:
            self._task.cancel()

    async def _read(self, asked: object) -> None:
        try:
            await self._chat.twin().read_ahead()
            self._ready = (asked, self._now())
        except UniunError:
            return
        finally:
            self._task = None

    def _asked(self) -> object:
        conversation = self._chat.conversation
        return (conversation.id, conversation.leaf_id, conversation.model)
