"""How long to wait before the next attempt: exponential, with full jitter (Brooker, AWS Architecture Blog, 2015)."""

import random

FIRST_S = 0.5
LONGEST_S = 10.0


class Backoff:
    """Grows with every `next_s` up to a limit, and begins anew after `reset`."""

    def __init__(self, chance: random.Random, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._chance = chance
        self._first_s = first_s
        self._longest_s = longest_s
        self._failures = 0

    def next_s(self) -> float:
        """At least a tenth of the whole step, so that nobody asks in a tight loop."""
        step_s: float = min(self._longest_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self._chance.uniform(step_s / 10, step_s)

    def reset(self) -> None:
        self._failures = 0
