"""Looking at the machine and the installation."""

from collections.abc import AsyncIterator
from typing import Protocol

from domain.entities.health import EngineProcess, Finding
from domain.entities.models import Memory


class Health(Protocol):
    """Read-only checks; none of them loads a model."""

    def findings(self) -> AsyncIterator[Finding]:
        """One after another, as each check ends; some take seconds."""
        ...

    def engine_processes(self) -> tuple[EngineProcess, ...]:
        """Engine processes of this user, oldest first."""
        ...

    def memory(self) -> Memory:
        """At this moment."""
        ...


class EngineProbe(Protocol):
    """A look at the engine itself."""

    async def answers(self) -> bool:
        """Whether it gives a sign of life now; it is started first when it has not been. Takes seconds at most."""
        ...
