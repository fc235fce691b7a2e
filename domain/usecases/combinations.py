"""Drawing pairs and triples of notes, none of them twice."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from random import Random

Combination = tuple[str, ...]
SIZES = (2, 3)
TRIPLES = 1 / 3
"""Share of triples among what is drawn, as long as there are both."""
_TRIES = 64


class CombinationSampler:
    """Draws without replacement. Memory grows with what is taken, never with what there could be.

    While at least half of a size is free, it guesses until a guess is free: two guesses on average. When less is free,
    it enumerates: at most twice as many as are taken already.
    """

    def __init__(self, note_ids: Sequence[str], taken: Iterable[Combination], seed: str) -> None:
        self._taken = set(taken)
        self._random = Random(seed)
        self._ids: list[str] = []
        self._used = dict.fromkeys(SIZES, 0)
        self._hold(note_ids)

    def draw(self) -> Combination | None:
        """A free combination, sorted, taken from now on; none when nothing is free."""
        sizes = SIZES if self._random.random() >= TRIPLES else SIZES[::-1]
        for size in sizes:
            drawn = self._draw(size)
            if drawn is not None:
                self._taken.add(drawn)
                self._used[size] += 1
                return drawn
        return None

    @property
    def exhausted(self) -> bool:
        """Whether nothing is free."""
        return all(self._used[size] >= comb(len(self._ids), size) for size in SIZES)

    def forget(self, note_ids: Iterable[str]) -> None:
        """These notes are gone."""
        gone = set(note_ids)
        self._hold([note_id for note_id in self._ids if note_id not in gone])

    def _hold(self, note_ids: Sequence[str]) -> None:
        self._ids = sorted(note_ids)
        present = set(note_ids)
        self._used = dict.fromkeys(SIZES, 0)
        for combination in self._taken:
            if len(combination) in self._used and present.issuperset(combination):
                self._used[len(combination)] += 1

    def _draw(self, size: int) -> Combination | None:
        total = comb(len(self._ids), size)
        if self._used[size] >= total:
            return None
        if self._used[size] * 2 < total:
            for _ in range(_TRIES):
                guess = tuple(sorted(self._random.sample(self._ids, size)))
                if guess not in self._taken:
                    return guess
            return None
        free = [each for each in combinations(self._ids, size) if each not in self._taken]
        return self._random.choice(free)
