"""What the user looks at, over all open pages: the last one that was turned to, of those that can be seen."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from nicegui import Client, ui
from nicegui.events import GenericEventArguments

from domain.entities.llm import LlmTaskKind

SILENCE_S = 4.0
"""A page that says nothing for so long is dead or asleep; it says something every 1.5 s while it is seen."""
SWEEP_S = 0.5
Surface = tuple[LlmTaskKind, str | None]


@dataclass
class _Page:
    """One open page, as its browser last told."""

    surface: Surface | None = None
    visible: bool = True
    heard_at: float = 0.0
    turned_to: int = 0
    """Grows; the largest was turned to last."""


class Surfaces:
    """Sets and clears the foreground. `now` is any clock that only goes forward, in seconds."""

    def __init__(
        self, look_at: Callable[[LlmTaskKind | None, str | None], None], now: Callable[[], float]
    ) -> None:
        self._look_at = look_at
        self._now = now
        self._pages: dict[str, _Page] = {}
        self._told: Surface | None = None
        self._turns = itertools.count(1)

    # -- for pages

    def enter(self, kind: LlmTaskKind, subject: str | None = None) -> None:
        """The page that is being drawn, or whose event is being handled, shows this from now on."""
        self.show(ui.context.client.id, (kind, subject))

    def leave(self) -> None:
        """The same page shows nothing of any kind; closing a page needs no call."""
        self.show(ui.context.client.id, None)

    def follow(self, client: Client) -> None:
        """Hears from this page what its browser tells, until it is closed."""

        def tell(event: GenericEventArguments) -> None:
            said = event.args if isinstance(event.args, dict) else {}
            self.heard(
                client.id, visible=said.get("visible") is True, turned_to=said.get("turned_to") is True
            )

        with client:
            ui.on("uniun_seen", tell)
        client.on_disconnect(lambda: self.hide(client.id))
        client.on_delete(lambda: self.gone(client.id))

    # -- the rules

    def show(self, page: str, surface: Surface | None) -> None:
        self._page(page).surface = surface
        self.settle()

    def heard(self, page: str, *, visible: bool, turned_to: bool = False) -> None:
        """A sign of life. `turned_to`: the user came to it or touched it."""
        state = self._page(page)
        state.visible, state.heard_at = visible, self._now()
        if turned_to:
            state.turned_to = next(self._turns)
        self.settle()

    def turn_to(self, page: str) -> None:
        """It has been drawn, and its surface is known: from now on it counts."""
        self.heard(page, visible=True, turned_to=True)

    def seen(self, page: str) -> bool:
        """Whether somebody can look at it."""
        state = self._pages.get(page)
        return state is not None and state.visible and state.heard_at >= self._now() - SILENCE_S

    def hide(self, page: str) -> None:
        """The connection is lost: the tab was closed, or will be heard again."""
        if page in self._pages:
            self._pages[page].visible = False
            self.settle()

    def gone(self, page: str) -> None:
        self._pages.pop(page, None)
        self.settle()

    def settle(self) -> None:
        """Tells the scheduler, if what counts has changed."""
        seen = [page for name, page in self._pages.items() if self.seen(name)]
        surface = max(seen, key=lambda page: page.turned_to).surface if seen else None
        if surface != self._told:
            self._told = surface
            self._look_at(*(surface or (None, None)))

    async def watch(self) -> None:
        """Finds pages that have gone silent, until it is cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self.settle()

    def _page(self, page: str) -> _Page:
        return self._pages.setdefault(page, _Page(heard_at=self._now()))
