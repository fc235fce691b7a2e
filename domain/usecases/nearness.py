"""Which notes are near enough in meaning: one cut-off for searches and for answers."""

from collections.abc import Sequence

MIN_COSINE = 0.2
"""all-MiniLM-L6-v2 gives unrelated texts less; "hello" should bring no notes."""
NEAR_THE_BEST = 0.5
"""Share of the best note's cosine below which a note is beside the point."""


def near_enough(nearest: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Of (note id, cosine), best first, those that have to do with what was asked."""
    least = max(MIN_COSINE, NEAR_THE_BEST * nearest[0][1]) if nearest else 0.0
    return tuple(one for one in nearest if one[1] >= least)
