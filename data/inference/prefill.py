"""How many prompt tokens to evaluate at once."""

MIN_CHUNK = 8
MAX_CHUNK = 512
FIRST_CHUNK = 16


class ChunkSizer:
    """Learns the prefill speed and sizes chunks so that one takes about `chunk_s`: the longest wait of a stop."""

    def __init__(self, chunk_s: float) -> None:
        self._chunk_s = chunk_s
        self._tokens_per_s: float | None = None

    def size(self) -> int:
        if self._tokens_per_s is None:
            return FIRST_CHUNK
        return max(MIN_CHUNK, min(MAX_CHUNK, int(self._tokens_per_s * self._chunk_s)))

    def learn(self, tokens: int, took_s: float) -> None:
        """Half the weight on the newest chunk; a remainder below the smallest chunk says little and is ignored."""
        if tokens < MIN_CHUNK:
            return
        speed = tokens / max(took_s, 1e-6)
        self._tokens_per_s = speed if self._tokens_per_s is None else (self._tokens_per_s + speed) / 2
