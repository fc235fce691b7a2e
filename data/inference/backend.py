"""What a model library must offer for the token loop to run on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.entities.llm import Sampling

_MARK = "\x02"
"""A character that no token has together with others."""


@dataclass(frozen=True)
class Vocabulary:
    """Tokens of a model, and how text becomes tokens."""

    size: int
    piece: Callable[[int], bytes]
    """The text of a token in UTF-8, perhaps only a part of a character; empty for a control token."""
    control: Mapping[str, int]
    """Control tokens (`<|im_end|>`, ...) by their text."""
    end: frozenset[int]
    """Tokens that end an answer."""
    encode: Callable[[str, bool], list[int]]
    """Text to tokens without a beginning-of-sequence token; the flag says whether control tokens are recognised."""
    bos: int | None
    """Token that every sequence begins with, if the model wants one."""
    template: str | None
    """The chat template in Jinja, if the model has one."""
    bos_text: str = ""
    eos_text: str = ""

    def encode_inside(self, text: str, specials: bool) -> list[int]:
        """As `encode`, for text that other text comes before.

        A SentencePiece vocabulary puts a space before every text that it is given, as before a word. Here that one goes
        before a mark, and both are taken away again.
        """
        if not text or not self._puts_a_space_before:
            return self.encode(text, specials)
        ids, before = self.encode(_MARK + text, specials), b""
        for at, token in enumerate(ids, start=1):
            before += self.piece(token)
            if before.endswith(_MARK.encode()):
                return ids[at:]
        return self.encode(text, specials)

    @cached_property
    def _puts_a_space_before(self) -> bool:
        return b"".join(map(self.piece, self.encode("a", False))).startswith(b" ")


class Interrupted(Exception):
    """An evaluation was given up half-way; of its tokens the sequence holds none."""


class Backend(Protocol):
    """A loaded model. Made, used and closed in one thread.

    A sequence is a number below `slots`; its KV state holds the tokens evaluated so far. One sequence advances per
    call; a later version may take several.
    """

    name: str
    vocabulary: Vocabulary
    context_tokens: int
    slots: int
    least_chunk: int
    most_chunk: int
    """Tokens of a prefill chunk, whose size is a matter of time within these limits and must not matter for the result. One
    evaluation takes less than both together."""
    last_alone: bool
    """The last token of a prompt is evaluated by itself, because the logits of one of several cost as much as those of all."""
    interruptible: bool
    """Whether `interrupt` does anything."""

    def arm(self) -> None:
        """From here on, and not before, an `interrupt` counts for the next evaluation."""
        ...

    def interrupt(self) -> None:
        """Ends the evaluation that runs, in milliseconds. Called from another thread; harmless when none runs."""
        ...

    def evaluate(self, sequence: int, tokens: Sequence[int], position: int, *, want_logits: bool) -> None:
        """Appends `tokens` at `position`, the number of tokens already held. On an error the state is undefined.

        Raises `Interrupted`.
        """
        ...

    def sample(self, sampling: Sampling, position: int) -> int:
        """Draws from the logits of the last token evaluated. A pure function of logits, seed and position."""
        ...

    def logits(self) -> NDArray[np.float32]:
        """Of the last token evaluated, shape (vocabulary size,); the caller may write into it."""
        ...

    def trim(self, sequence: int, tokens: int) -> bool:
        """Keeps the first `tokens` tokens. False if this model's state cannot be cut there."""
        ...

    def clear(self, sequence: int) -> None:
        """Drops all state of the sequence."""
        ...

    def kv_bytes(self, sequence: int) -> int:
        """Memory that clearing the sequence would free; 0 where all of it is taken at load."""
        ...

    def close(self) -> None:
        """Frees the model and gives the memory back to the system."""
        ...
