"""The demo's load, on whatever device there is."""

from collections.abc import Callable, Sequence
from typing import Protocol

from domain.entities.demo import DemoEvent, DemoPolicy, DemoReport


class Demo(Protocol):
    """Plays the same load under each policy and measures what the user notices."""

    async def play(
        self,
        model: str,
        policies: Sequence[DemoPolicy],
        window_s: float,
        watch: Callable[[DemoEvent], None],
    ) -> DemoReport:
        """Runs one policy after another, each on a fresh engine for `window_s` seconds.

        `watch` is called a few times a second and must return quickly: it runs beside what is measured. Raises
        `ModelError` and `EngineError`. Being cancelled ends the engine.
        """
        ...
