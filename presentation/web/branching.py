"""Going on from another message than the last: until something is written there, it can be left again."""

from collections.abc import Callable

from domain.entities.conversation import ChatMessage
from presentation.controllers.chat import ChatController
from presentation.web.composer import Composer
from presentation.web.site import Site


class Branching:
    """Of one conversation on one page."""

    def __init__(
        self, site: Site, chat: ChatController, composer: Composer, check: Callable[[], object]
    ) -> None:
        """`check` raises why the path cannot be changed at the moment."""
        self._site = site
        self._chat = chat
        self._composer = composer
        self._check = check
        self._at = self._before = ""
        """The message that the user last asked here to go on from, and the end of what was shown then."""
        composer.on_unbranch(self._leave)

    @property
    def begins(self) -> bool:
        """Whether what is written next is the first of a branch, wherever that was asked for."""
        return bool(self._chat.path) and self._chat.path[-1].goes_on

    async def begin(self, message: ChatMessage) -> None:
        self._check()
        if self._chat.path[-1].message.id != message.id:
            self._at, self._before = message.id, self._chat.conversation.leaf_id or ""
            await self._chat.branch(message.id)
            self._site.changes.tell("conversations")
        self._composer.focus()

    async def _leave(self) -> None:
        """Back to what was shown before; where that is not known, to what came last."""
        self._check()
        if self.begins:
            end = self._chat.path[-1].message.id
            if self._before and end == self._at:
                await self._chat.branch(self._before)
            else:
                await self._chat.show_sibling(end)
            self._site.changes.tell("conversations")
        self._composer.focus()
