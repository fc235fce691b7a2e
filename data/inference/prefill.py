"""How many prompt tokens to evaluate at once."""

MIN_CHUNK = 8
FIRST_CHUNK = 16
_LAST = 1.5
"""The last chunk may be so many times as long: a short one computes each token at a higher price."""
_LEAST_REST = 3
"""llama.cpp multiplies fewer rows by other kernels, whose sums differ in the last bits."""


class ChunkSizer:
    """Learns the prefill speed and sizes chunks so that one takes about `chunk_s`.

    A long chunk is the cheaper one: measured on two cores, chunks of 24 tokens run at 0.87 of the speed of 384, of 64
    at 0.96, of 128 at 0.99. `largest` is in tokens.
    """

    def __init__(self, chunk_s: float, largest: int) -> None:
        self._chunk_s = chunk_s
        self._largest = largest
        self._tokens_per_s: float | None = None

    def size(self, missing: int) -> int:
        """Of the next chunk, when so many tokens are still to be evaluated."""
        size = min(self._largest, self._wanted())
        if missing <= min(self._largest, _LAST * size):
            return missing
        return size - max(0, _LEAST_REST - (missing - size))

    def _wanted(self) -> int:
        if self._tokens_per_s is None:
            return FIRST_CHUNK
        return max(MIN_CHUNK, int(self._tokens_per_s * self._chunk_s))

    def learn(self, tokens: int, took_s: float) -> None:
        """Half the weight on the newest chunk; a remainder below the smallest chunk says little and is ignored."""
        if tokens < MIN_CHUNK:
            return
        speed = tokens / max(took_s, 1e-6)
        self._tokens_per_s = speed if self._tokens_per_s is None else (self._tokens_per_s + speed) / 2
