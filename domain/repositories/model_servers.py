"""Servers elsewhere that run models."""

from typing import Protocol

from domain.entities.models import RemoteModel, ServerState


class ModelServers(Protocol):
    """Asks them how they are."""

    async def states(self, remote: RemoteModel) -> tuple[ServerState, ...]:
        """Of each server, in the order of their addresses; one that does not answer says so in `error`. Takes seconds."""
        ...
