"""Drawing a token as a pure function of logits, seed and position, so that preemption cannot change it."""

import numpy as np
from numpy.typing import NDArray

from domain.entities.llm import Sampling

REDRAW = 1 << 62
"""Added to the position when a token is drawn a second time, so that the two draws are independent."""
_GREEDY_BELOW = 1e-4
"""Logits divided by less leave 32-bit floats; at this temperature the draw is the likeliest token all the same."""


def greedy(sampling: Sampling) -> bool:
    """Whether the likeliest token is taken."""
    return sampling.temperature < _GREEDY_BELOW


def sample(logits: NDArray[np.float32], sampling: Sampling, position: int) -> int:
    """Top-k, top-p and min-p on the untempered distribution, then temperature: llama.cpp's default order."""
    if greedy(sampling):
        return int(logits.argmax())
    if 0 < sampling.top_k < logits.size:
        ids = np.argpartition(logits, -sampling.top_k)[-sampling.top_k :]
    else:
        ids = np.flatnonzero(np.isfinite(logits))
    ids = ids[np.argsort(-logits[ids], kind="stable")]
    kept = logits[ids].astype(np.float64)
    weights = np.exp(kept - kept[0])
    if sampling.top_p < 1:
        before = np.cumsum(weights) - weights
        count = int(np.count_nonzero(before < sampling.top_p * weights.sum()))
        ids, kept, weights = ids[:count], kept[:count], weights[:count]
    if sampling.min_p > 0:
        chosen = weights >= sampling.min_p
        ids, kept = ids[chosen], kept[chosen]
    totals = np.cumsum(np.exp((kept - kept[0]) / sampling.temperature))
    at = np.searchsorted(totals, uniform(sampling.seed or 0, position) * totals[-1], side="right")
    return int(ids[min(int(at), ids.size - 1)])


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) for this seed and position: one block of Philox, a counter-based generator."""
    return float(np.random.Generator(np.random.Philox(key=[seed, position])).random())


def seed32(seed: int, position: int) -> int:
    """A 32-bit seed for one draw (splitmix64 of both numbers)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + position + 1) & _MASK
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = ((mixed ^ (mixed >> shift)) * factor) & _MASK
    return (mixed ^ (mixed >> 31)) >> 32


_MASK = (1 << 64) - 1
