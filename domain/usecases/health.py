"""Asking how the installation is, and what runs on this machine."""

from collections.abc import AsyncIterator

from domain.entities.health import EngineProcess, Finding
from domain.repositories.health import EngineProbe, Health


class DiagnoseUseCase:
    """Finds what is wrong and how to mend it."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def __call__(self) -> AsyncIterator[Finding]:
        """Findings as they come in."""
        return self._health.findings()


class ListEngineProcessesUseCase:
    """What is loaded at this moment, in every UNIUN process of this user."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def __call__(self) -> tuple[EngineProcess, ...]:
        """Oldest first."""
        return self._health.engine_processes()


class EngineAnswersUseCase:
    """Asks the engine for a sign of life."""

    def __init__(self, engine: EngineProbe) -> None:
        self._engine = engine

    async def __call__(self) -> bool:
        """False when it is dead, hangs, or cannot be started."""
        return await self._engine.answers()
