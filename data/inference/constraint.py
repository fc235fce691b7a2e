"""Structured output: a JSON schema compiled by llguidance into what tokens may come next."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.inference.backend import Vocabulary
from data.inference.sampling import sample
from data.inference.tool_grammar import tool_grammar
from domain.entities.llm import Sampling
from domain.errors import EngineMissing, InvalidSchema
from domain.repositories.inference_runner import RunnerJob

_LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""On one line, as `json.dumps` writes it: a small model left free spends its tokens on blanks."""


class Grammars:
    """Compiles schemas for one vocabulary; the token table is built at the first use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokenizer: Any = None

    def for_job(self, job: RunnerJob) -> "Matcher | None":
        """None when anything may be written. Raises as `matcher` does, and `InvalidRequest`."""
        if job.tooling is not None:
            template, control = self._vocabulary.template or "", self._vocabulary.control
            tooling, schema = job.tooling, job.json_schema
            return self._compiled(
                lambda llguidance: llguidance.LLMatcher.grammar_from_lark(
                    tool_grammar(tooling, template, schema, _LAYOUT, control)
                )
            )
        return None if job.json_schema is None else self.matcher(job.json_schema)

    def matcher(self, schema: dict[str, object]) -> "Matcher":
        """Raises `InvalidSchema`, `EngineMissing`."""
        return self._compiled(
            lambda llguidance: llguidance.LLMatcher.grammar_from_json_schema(
                json.dumps(schema), overrides=_LAYOUT
            )
        )

    def _compiled(self, grammar_from: Callable[[Any], str]) -> "Matcher":
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
            grammar = grammar_from(llguidance)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"The JSON schema cannot be compiled: {error}") from error
        compiled = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if compiled.is_error():
            raise InvalidSchema(f"The JSON schema cannot be compiled: {_reason(compiled)}")
        matcher = Matcher(compiled, self._vocabulary)
        matcher.allowed()  # finds a schema that no JSON fulfils, such as a $ref to itself
        return matcher


class Matcher:
    """The state of one constrained answer."""

    def __init__(self, matcher: Any, vocabulary: Vocabulary) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    def allows(self, token: int) -> bool:
        if token in self._vocabulary.end:
            return bool(self._matcher.is_accepting())
        return bool(self._matcher.validate_tokens([token]) == 1)

    def allowed(self) -> NDArray[np.uint8]:
        """1 for each token that may come next, else 0. Raises `InvalidSchema` if there is none."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        self._check()
        return np.unpackbits(bits, bitorder="little")

    def sample_allowed(self, logits: NDArray[np.float32], sampling: Sampling, position: int) -> int:
        """Draws among the tokens that may come next; overwrites `logits`. Raises `InvalidSchema` if there is none."""
        allowed = self.allowed()[: logits.size]
        logits[: allowed.size][allowed == 0] = -np.inf
        logits[allowed.size :] = -np.inf
        return sample(logits, sampling, position)

    def consume(self, token: int) -> bool:
        """Takes a token that is allowed; true when the output is complete and nothing more may come.

        Raises `InvalidSchema` when the schema is too complex for the matcher.
        """
        self._matcher.consume_token(token)
        self._check()
        return bool(self._matcher.is_stopped())

    def _check(self) -> None:
        """A matcher in an error state also says that it has stopped: such an output must not pass for complete."""
        if self._matcher.is_error():
            raise InvalidSchema(
                f"The JSON schema leaves no valid output ({_reason(self._matcher)}). "
                "Look for a $ref that leads back to itself, or for rules that exclude each other."
            )


def _reason(matcher: Any) -> str:
    """The first line; dumps of the parser's state may follow it."""
    return str(matcher.get_error()).strip().split("\n", 1)[0]


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
        self._encode = vocabulary.encode_inside

    def __call__(self, text: bytes) -> list[int]:
        return self._encode(text.decode("utf-8", "replace"), False)
