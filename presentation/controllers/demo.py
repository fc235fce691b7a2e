"""The demo, for whichever face shows it."""

from collections.abc import Callable, Sequence

from domain.entities.demo import DemoEvent, DemoPolicy, DemoReport
from domain.errors import InvalidRequest
from domain.usecases.demo import PlayDemoUseCase

POLICIES: tuple[DemoPolicy, ...] = ("idle", "fifo", "two-lane", "uniun")
SHORTEST_S, LONGEST_S = 2.0, 600.0


class DemoController:
    """Checks what was asked for and plays it."""

    def __init__(self, play: PlayDemoUseCase) -> None:
        self._play = play

    def choose(self, policies: Sequence[str]) -> tuple[DemoPolicy, ...]:
        """All when none is named; always in the same order. Raises `InvalidRequest` for an unknown one."""
        unknown = sorted(set(policies) - set(POLICIES))
        if unknown:
            raise InvalidRequest(f"There is no policy {unknown[0]}. Choose from: {', '.join(POLICIES)}.")
        return tuple(policy for policy in POLICIES if not policies or policy in policies)

    async def play(
        self,
        model: str,
        policies: Sequence[DemoPolicy],
        window_s: float,
        watch: Callable[[DemoEvent], None],
    ) -> DemoReport:
        """`policies` in the order given. Raises `InvalidRequest`, `ModelError`, `EngineError`."""
        if not SHORTEST_S <= window_s <= LONGEST_S:
            raise InvalidRequest(f"A window must last from {SHORTEST_S:g} to {LONGEST_S:g} seconds.")
        return await self._play(model, policies, window_s, watch)
