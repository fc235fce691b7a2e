"""Keeping a claim while work goes on."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from domain.entities.gana import Tick


class Leases(Protocol):
    """A claim runs out unless it is renewed."""

    def hold(self, tick: Tick) -> AbstractAsyncContextManager[None]:
        """Renews the claim while entered. If it is lost all the same, the body is cancelled and `TickLost` raised."""
        ...
