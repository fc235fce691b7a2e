"""How fast engine processes may follow each other."""

from collections import deque

from data.clock import Clock

_FIRST_PAUSE_S = 0.5


class StartPace:
    """At most `limit` starts in any window of `window_s` seconds, and longer and longer pauses between them.

    The first two starts of a window come at once, so that one crash delays nobody; then come pauses of 0.5, 1, 2, … s.
    """

    def __init__(self, limit: int, window_s: float, clock: Clock) -> None:
        self._window_s = window_s
        self._clock = clock
        self._starts: deque[float] = deque(maxlen=limit)

    def wait_s(self) -> float:
        """From now until the next start is allowed, at most the window."""
        now = self._clock.monotonic()
        recent = [at for at in self._starts if now - at < self._window_s]
        if len(recent) == self._starts.maxlen:
            return self._window_s - (now - recent[0])
        if len(recent) < 2:
            return 0.0
        return float(min(self._window_s, _FIRST_PAUSE_S * 2.0 ** (len(recent) - 2)))

    def started(self) -> None:
        self._starts.append(self._clock.monotonic())

    def clear(self) -> None:
        """The process has proved itself: a job was finished."""
        self._starts.clear()
