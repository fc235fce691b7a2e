"""llama.cpp with a SentencePiece vocabulary: spaces, single bytes, structured output and stops."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from data.clock import SystemClock
from data.inference.constraint import Grammars
from data.inference.llama_backend import LlamaBackend
from data.inference.mlx_backend import _vocabulary
from data.inference.options import EngineOptions
from data.inference.token_loop import TokenLoop
from data.models.inspection import inspect_gguf
from domain.entities.llm import Sampling
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome
from tests.data.inference.engines import chat
from tests.data.inference.sentencepiece_model import CONTEXT, write_model, write_tokenizer

TEXTS = ["the 日本 😀 é\n", " the", "x", "", "  two", "ein Bär", "\x00\x02", "a\n\n▁b"]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "count": {"type": "integer", "maximum": 999}},
    "required": ["name", "count"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model") / "sentencepiece.gguf"
    write_model(made)
    return made


@pytest.fixture(scope="module")
def backend(path: Path) -> Iterator[LlamaBackend]:
    opened = LlamaBackend(path, EngineOptions(threads=1), SystemClock())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def loop(backend: LlamaBackend) -> TokenLoop:
    return TokenLoop(backend, EngineOptions(threads=1), SystemClock())


def run(
    loop: TokenLoop, job: RunnerJob, stop_after: int | None = None, produced: list[int] | None = None
) -> tuple[RunnerOutcome, str, list[int]]:
    """The outcome, the streamed text and all tokens produced."""
    streamed: list[str] = []
    tokens = list(produced or ())

    def at_boundary(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
        streamed.append(text)
        tokens.extend([token] if token is not None else [])

    outcome = loop.run(job, list(tokens), at_boundary, lambda: len(tokens) == stop_after)
    return outcome, "".join(streamed), tokens


def job(name: str, seed: int, **fields: object) -> RunnerJob:
    given = {"id": name, "cache_key": name, "messages": chat("Hi </s> 日本"), "max_tokens": 60}
    return RunnerJob.model_validate(given | {"sampling": Sampling(temperature=1.0, seed=seed)} | fields)


def test_it_is_a_whole_model(path: Path, backend: LlamaBackend) -> None:
    assert inspect_gguf(path).context_tokens == backend.context_tokens == CONTEXT


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_becomes_tokens_of_the_same_text(backend: LlamaBackend, text: str) -> None:
    vocabulary = backend.vocabulary
    plain = text.replace("▁", " ").encode()
    alone = b"".join(map(vocabulary.piece, vocabulary.encode(text, False)))
    assert alone == (b" " + plain if text else b""), "its own tokenizer puts a space before"
    assert b"".join(map(vocabulary.piece, vocabulary.encode_inside(text, False))) == plain


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_so_it_is_with_a_tokenizer_of_a_folder(tmp_path: Path, scheme: str) -> None:
    write_tokenizer(tmp_path, scheme)
    vocabulary = _vocabulary(tmp_path, {})
    for text in TEXTS:
        found = b"".join(map(vocabulary.piece, vocabulary.encode_inside(text, False)))
        assert found == text.replace("▁", " ").encode()
    matcher = Grammars(vocabulary).matcher(SCHEMA)
    chance = np.random.default_rng(1)
    written = b""
    for at in range(300):
        logits = chance.standard_normal(vocabulary.size).astype(np.float32)
        token = matcher.sample_allowed(logits, Sampling(temperature=1.0, seed=1), at)
        written += vocabulary.piece(token)
        if matcher.consume(token):
            break
    assert set(json.loads(written)) == {"name", "count"}


def test_a_message_that_looks_like_control_gets_no_space_in_it(loop: TokenLoop) -> None:
    tokens = loop._begin(job("shown", 1), [], None).tokens
    vocabulary = loop._backend.vocabulary
    ends = [at for at, token in enumerate(tokens) if token == vocabulary.control["</s>"]]
    assert len(ends) == 1, "the template's own"
    assert b"".join(map(vocabulary.piece, tokens[: ends[0]])) == " [user] Hi </s> 日本".encode()


@pytest.mark.parametrize("seed", range(6))
def test_text_never_splits_a_character_and_stops_lose_nothing(loop: TokenLoop, seed: int) -> None:
    whole, streamed, _ = run(loop, job(f"whole-{seed}", seed))
    assert streamed == whole.text
    whole.text.encode()
    for stop_after in (1, 7, 20):
        name = f"cut-{seed}-{stop_after}"
        stopped, first, produced = run(loop, job(name, seed), stop_after)
        _, rest, _ = run(loop, job(name, seed), produced=produced)
        assert first + rest == whole.text
        assert stopped.status == "stopped" or not rest


@pytest.mark.parametrize("seed", range(6))
def test_structured_output(loop: TokenLoop, seed: int) -> None:
    outcome, _, _ = run(loop, job(f"schema-{seed}", seed, json_schema=SCHEMA, max_tokens=300))
    found = json.loads(outcome.text)
    assert set(found) == {"name", "count"}
    assert len(found["name"]) <= 8
