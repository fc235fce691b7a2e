"""Showing what the scheduler is for."""

from collections.abc import Callable, Sequence

from domain.entities.demo import DemoEvent, DemoPolicy, DemoReport
from domain.repositories.demo import Demo


class PlayDemoUseCase:
    """The same load under several policies, measured on this machine."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo

    async def __call__(
        self,
        model: str,
        policies: Sequence[DemoPolicy],
        window_s: float,
        watch: Callable[[DemoEvent], None],
    ) -> DemoReport:
        """The model must be installed. Raises `ModelError`, `EngineError`."""
        return await self._demo.play(model, policies, window_s, watch)
