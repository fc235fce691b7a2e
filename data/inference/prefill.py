"""How many prompt tokens to evaluate at once."""

FIRST_CHUNK = 16
ALIGN = 8
"""All chunks but the last are multiples of it: kernels compute several tokens together (llama.cpp's packed ones four) and those
that are left over otherwise, with other bits."""


class ChunkSizer:
    """Learns the prefill speed and sizes chunks so that one takes about `chunk_s`. `least` and `most` are multiples of `ALIGN`.

    A long chunk is the cheaper one, so what is left goes with the last chunk when it would be less than `least` tokens
    by itself. No chunk is shorter than that where so many are missing.
    """

    def __init__(self, chunk_s: float, least: int, most: int) -> None:
        self._chunk_s = chunk_s
        self._least = least
        self._most = most
        self._tokens_per_s: float | None = None

    def size(self, missing: int) -> int:
        """Of the next chunk, when so many tokens are still to be evaluated: less than `most` + `least`."""
        size = min(self._most, max(self._least, self._wanted())) // ALIGN * ALIGN
        return missing if missing < size + self._least else size

    def _wanted(self) -> int:
        return FIRST_CHUNK if self._tokens_per_s is None else int(self._tokens_per_s * self._chunk_s)

    def learn(self, tokens: int, took_s: float) -> None:
        """Half the weight on the newest chunk; a remainder below the smallest chunk says little and is ignored."""
        if tokens < self._least:
            return
        speed = tokens / max(took_s, 1e-6)
        self._tokens_per_s = speed if self._tokens_per_s is None else (self._tokens_per_s + speed) / 2
