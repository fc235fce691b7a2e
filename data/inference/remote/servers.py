"""Asking a model's servers how they are, and making their runner."""

from data.clock import Clock
from data.inference.remote.runner import RemoteRunner
from domain.entities.models import RemoteModel, ServerState


class RemoteServers:
    """Implements `ModelServers`; each question has connections of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def states(self, remote: RemoteModel) -> tuple[ServerState, ...]:
        runner = self.runner(remote.model, remote)
        try:
            return await runner.states()
        finally:
            await runner.aclose()

    def runner(self, name: str, remote: RemoteModel) -> RemoteRunner:
        """For the model that is known here as `name`."""
        return RemoteRunner(name, remote, self._clock)
