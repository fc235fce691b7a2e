"""Structured output: a JSON schema compiled by llguidance into what tokens may come next."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.inference.backend import Vocabulary
from data.inference.sampling import sample
from domain.entities.llm import Sampling
from domain.errors import EngineMissing, InvalidSchema

_WHITESPACE = r"[\x20\x0A]{1,16}"
"""Between JSON tokens. Bounded, so that a small model cannot go on with blanks for ever."""


class Grammars:
    """Compiles schemas for one vocabulary; the token table is built at the first use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokenizer: Any = None

    def matcher(self, schema: dict[str, object]) -> "Matcher":
        """Raises `InvalidSchema`, `EngineMissing`."""
        try:
            import llguidance
        except ImportError as error:
            raise EngineMissing(
                f"Structured output needs llguidance ({error}). Run: pip install llguidance"
            ) from error
        if self._tokenizer is None:
            wrapper = llguidance.TokenizerWrapper(_TokenTable(self._vocabulary))
            self._tokenizer = llguidance.LLTokenizer(
                wrapper, n_vocab=self._vocabulary.size, eos_token=sorted(self._vocabulary.end)
            )
        try:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(
                json.dumps(schema), overrides={"whitespace_pattern": _WHITESPACE}
            )
        except ValueError as error:
            raise InvalidSchema(f"The JSON schema cannot be compiled: {error}") from error
        matcher = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise InvalidSchema(f"The JSON schema cannot be compiled: {matcher.get_error()}")
        return Matcher(matcher, self._vocabulary)


class Matcher:
    """The state of one constrained answer."""

    def __init__(self, matcher: Any, vocabulary: Vocabulary) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    def allows(self, token: int) -> bool:
        if token in self._vocabulary.end:
            return bool(self._matcher.is_accepting())
        return bool(self._matcher.validate_tokens([token]) == 1)

    def sample_allowed(self, logits: NDArray[np.float32], sampling: Sampling, position: int) -> int:
        """Draws among the tokens that may come next; overwrites `logits`."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(bits, bitorder="little")[: logits.size]
        logits[: allowed.size][allowed == 0] = -np.inf
        logits[allowed.size :] = -np.inf
        return sample(logits, sampling, position)

    def consume(self, token: int) -> bool:
        """Takes a token that is allowed; true when the output is complete and nothing more may come."""
        self._matcher.consume_token(token)
        return bool(self._matcher.is_stopped())


class _TokenTable:
    """The interface that llguidance wants of a tokenizer."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        specials = {token: text for text, token in vocabulary.control.items()}
        self.eos_token_id = min(vocabulary.end)
        self.special_token_ids = sorted(specials)
        self.tokens = [
            specials[token].encode() if token in specials else vocabulary.piece(token)
            for token in range(vocabulary.size)
        ]
        self._encode = vocabulary.encode

    def __call__(self, text: bytes) -> list[int]:
        return self._encode(text.decode("utf-8", "replace"), False)
