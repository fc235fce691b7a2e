"""How many CPU threads to compute with, while other programs may want the same cores."""

from data.clock import Clock

WINDOW = 4
"""Tokens whose mean is compared."""
CLEAR = 0.9
"""The other number of threads must be this much faster to be kept."""
WORSE = 2.0
"""So many times slower than at the last look: something has changed, try at once."""
HOLD_S = 1.0
MAX_HOLD_S = 30.0


class ThreadGovernor:
    """Tries fewer threads from time to time, and keeps what is faster.

    llama.cpp's threads meet at a barrier hundreds of times per token. If one has lost its core to another program, all
    wait for it. Measured on two cores, decode tokens per second with two threads and with one: undisturbed 101 and 74;
    beside other busy programs 1.5 to 15 and 15 to 67. A trial takes `WINDOW` tokens; after one that fails the next
    comes twice as late, up to `MAX_HOLD_S`.
    """

    def __init__(self, full: int, clock: Clock) -> None:
        self._clock = clock
        self._numbers = (full, max(1, full - max(1, full // 4)))
        self.threads = full
        self._held: float | None = None
        """Mean seconds a token at the number that is held; none before the first window."""
        self._trying = False
        self._hold_s = HOLD_S
        self._try_at = clock.monotonic() + HOLD_S
        self._sum = 0.0
        self._count = 0

    def learn(self, tokens: int, seconds: float) -> None:
        """One evaluation took so long; `threads` may be another afterwards. Prefill chunks vary too much to compare."""
        if tokens != 1 or self._numbers[0] == self._numbers[1]:
            return
        self._sum += seconds
        self._count += 1
        if self._count < WINDOW:
            return
        mean, self._sum, self._count = self._sum / WINDOW, 0.0, 0
        if self._trying:
            self._judge(mean)
        else:
            changed = self._held is not None and mean > WORSE * self._held
            self._held = mean
            if changed or self._clock.monotonic() >= self._try_at:
                self._trying = True
                self._swap()

    def _judge(self, mean: float) -> None:
        self._trying = False
        if self._held is not None and mean < CLEAR * self._held:
            self._held, self._hold_s = mean, HOLD_S
        else:
            self._swap()
            self._hold_s = min(MAX_HOLD_S, 2 * self._hold_s)
        self._try_at = self._clock.monotonic() + self._hold_s

    def _swap(self) -> None:
        full, fewer = self._numbers
        self.threads = fewer if self.threads == full else full
