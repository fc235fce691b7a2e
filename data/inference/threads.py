"""How many CPU threads to compute with, while other programs may want the same cores."""

from data.clock import Clock

WINDOW = 8
"""Tokens whose mean without the slowest is compared: one pause is no contention."""
CLEAR = 0.9
"""Fewer threads must be this much faster to be kept; all of them need only be faster: a hiccup is no contention."""
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
        self._window: list[float] = []

    @property
    def kept(self) -> int:
        """The number outside of trials: a trial must not slow a prefill chunk of a hundred times its length."""
        full, fewer = self._numbers
        return self.threads if not self._trying else fewer if self.threads == full else full

    def learn(self, tokens: int, seconds: float) -> None:
        """One evaluation took so long; `threads` may be another afterwards. Prefill chunks vary too much to compare."""
        if tokens != 1 or self._numbers[0] == self._numbers[1]:
            return
        self._window.append(seconds)
        if len(self._window) < WINDOW:
            return
        mean = (sum(self._window) - max(self._window)) / (WINDOW - 1)
        self._window.clear()
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
        margin = 1.0 if self.threads == self._numbers[0] else CLEAR
        if self._held is not None and mean < margin * self._held:
            self._held, self._hold_s = mean, HOLD_S
        else:
            self._swap()
            self._hold_s = min(MAX_HOLD_S, 2 * self._hold_s)
        self._try_at = self._clock.monotonic() + self._hold_s

    def _swap(self) -> None:
        full, fewer = self._numbers
        self.threads = fewer if self.threads == full else full
