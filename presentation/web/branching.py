"""Going on from another message than the last: until something is written there, it can be left again."""

from collections.abc import Callable

from domain.entities.conversation import ChatMessage
from presentation.controllers.chat import ChatController
from presentation.web.chat_thread import ends_at
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
        self._at: str | None = None
        """The message that the user last asked to go on from, where others had followed it."""
        self._before: str | None = None
        """The end of what was shown then."""
        composer.on_unbranch(self._leave)

    @property
    def begins(self) -> bool:
        """Whether what is written next is the first of a branch."""
        return ends_at(self._chat.path, self._at)

    async def begin(self, message: ChatMessage) -> None:
        self._check()
        if not ends_at(self._chat.path, message.id):
            self._at, self._before = message.id, self._chat.conversation.leaf_id
            await self._chat.branch(message.id)
            self._site.changes.tell("conversations")
        self._composer.focus()

    async def _leave(self) -> None:
        self._check()
        if self._before is not None:
            await self._chat.branch(self._before)
            self._at = self._before = None
            self._site.changes.tell("conversations")
        self._composer.focus()
