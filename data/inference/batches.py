"""In what batches a sequence was evaluated."""

from collections.abc import Iterable, Sequence

MOST_ONE_BY_ONE = 512
"""Tokens that are evaluated one by one to make a lost state anew. A job that loses its state again and again must come to an
end, so of a longer answer the beginning is read in chunks, and the rest may be another answer in a close call."""


class Batches:
    """Sizes of the evaluations that a KV state was made by, run-length encoded.

    Which kernels compute a token depends on how many are evaluated with it, so the same tokens in other batches leave
    slightly other numbers, and in a close call another answer. A lost state that is made anew in the same batches is
    the same bits.
    """

    def __init__(self, runs: Iterable[Sequence[int]] = ()) -> None:
        """Raises `ValueError` for runs that no evaluations leave."""
        self._runs: list[tuple[int, int]] = []
        """Size of the batches, and tokens that they hold together. The last batch of a run may have been cut."""
        for size, tokens in runs:
            if min(size, tokens) < 1:
                raise ValueError("a batch without a token")
            self._runs.append((size, tokens))

    @property
    def runs(self) -> list[tuple[int, int]]:
        return list(self._runs)

    @property
    def tokens(self) -> int:
        return sum(tokens for _, tokens in self._runs)

    def fit(self, most: int, context_tokens: int) -> bool:
        """Whether an engine that takes at most `most` tokens at once, and so many altogether, can evaluate them in good time."""
        if sum(tokens for size, tokens in self._runs if size == 1) > MOST_ONE_BY_ONE:
            return False
        begin = 0
        for size, tokens in self._runs:
            # A batch that was cut is evaluated whole.
            if size > most or begin + -(-tokens // size) * size > context_tokens:
                return False
            begin += tokens
        return True

    def append(self, size: int) -> None:
        if self._runs and self._runs[-1][0] == size and self._runs[-1][1] % size == 0:
            self._runs[-1] = (size, self._runs[-1][1] + size)
        else:
            self._runs.append((size, size))

    def until(self, tokens: int) -> list[tuple[int, int]]:
        """The runs of the first `tokens`."""
        found = []
        for size, held in self._runs:
            if tokens <= 0:
                break
            found.append((size, min(held, tokens)))
            tokens -= held
        return found

    def begin(self, position: int) -> int:
        """Where the batch begins that the token at `position` was evaluated in; raises `ValueError` behind the last."""
        begin = 0
        for size, tokens in self._runs:
            if position < begin + tokens:
                return begin + (position - begin) // size * size
            begin += tokens
        raise ValueError("no batch holds it")

    def at(self, position: int) -> tuple[int, int] | None:
        """Size of the batch that begins at `position`, and how many of its tokens are left; none behind the last."""
        for size, tokens in self._runs:
            if position < tokens:
                return size, min(size, tokens - position)
            position -= tokens
        return None
