"""How much of the device's recent busy time extract has used."""

from collections import deque

from data.scheduling.config import SchedulerConfig

STEP_S = 0.02
"""Shortest time between two looks at a share that nears a threshold."""


class ExtractShare:
    """Busy time by overlap with a sliding window, and a two-threshold switch on extract's part of it.

    Jobs that run at once count one each. Times that touch and are alike are kept as one segment, so the memory is bounded
    by the alternations within one window.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self._segments: deque[list[float]] = deque()
        """[start, end, jobs that ran, extracts among them], oldest first; they do not overlap."""
        self._busy = 0.0
        self._extract = 0.0
        self.exhausted = False

    def configure(self, config: SchedulerConfig) -> None:
        """From now on."""
        self._config = config

    def add(self, start: float, end: float, *, jobs: int, extracts: int) -> None:
        """So many jobs ran from `start` to `end`; called in order of time."""
        if end <= start:
            return
        last = self._segments[-1] if self._segments else None
        if last is not None and last[1:] == [start, jobs, extracts]:
            last[1] = end
        else:
            self._segments.append([start, end, jobs, extracts])
        self._busy += jobs * (end - start)
        self._extract += extracts * (end - start)

    def value(self, now: float, *, busy_s: float = 0.0, extract_s: float = 0.0) -> float:
        """Extract's share of the busy time in the window that ends now; with seconds that were not added yet."""
        busy, extract = self._within(now)
        return (extract + extract_s) / max(self._config.share_min_busy_s, busy + busy_s)

    def update(self, now: float) -> bool:
        """Moves the switch; true if it moved."""
        value = self.value(now)
        before = self.exhausted
        if value > self._config.extract_share:
            self.exhausted = True
        elif value < self._config.extract_resume_share:
            self.exhausted = False
        return self.exhausted is not before

    def next_change(self, now: float, *, slots: int, extracts: int) -> float | None:
        """A time before which the switch cannot move; look again then. None if it never will by itself.

        Lower bounds: while `extracts` run the share rises by at most 1/D a second for each (D the denominator); otherwise
        it falls by at most (1 + share)/D a second for each of the device's `slots`.
        """
        busy, extract = self._within(now)
        denominator = max(self._config.share_min_busy_s, busy)
        if not self.exhausted:
            if not extracts:
                return None
            gap = (self._config.extract_share * denominator - extract) / extracts
        else:
            gap = (
                (extract - self._config.extract_resume_share * denominator)
                / (1 + extract / denominator)
                / slots
            )
        return now + max(STEP_S, gap)

    def _within(self, now: float) -> tuple[float, float]:
        cut = now - self._config.share_window_s
        segments = self._segments
        while segments and segments[0][1] <= cut:
            start, end, jobs, extracts = segments.popleft()
            self._busy -= jobs * (end - start)
            self._extract -= extracts * (end - start)
        if not segments:
            self._busy = self._extract = 0.0
            return 0.0, 0.0
        start, _, jobs, extracts = segments[0]
        over = max(0.0, cut - start)
        return max(0.0, self._busy - jobs * over), max(0.0, self._extract - extracts * over)
