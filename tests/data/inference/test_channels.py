"""Answers in OpenAI's harmony format."""

from dataclasses import replace

import pytest

from data.clock import SystemClock
from data.inference.options import EngineOptions
from data.inference.token_loop import TokenLoop
from domain.repositories.inference_runner import RunnerJob
from domain.usecases.thinking import ThinkingFold
from tests.data.inference.engines import chat
from tests.data.inference.test_token_loop import Bytes

CONTROL = {"<|start|>": 250, "<|channel|>": 251, "<|message|>": 252, "<|end|>": 253, "<|return|>": 254}
TEMPLATE = "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant"


def tokens(text: str) -> list[int]:
    """A byte is a token, and so is a control token."""
    found: list[int] = []
    while text:
        name = next((name for name in CONTROL if text.startswith(name)), None)
        found.extend([CONTROL[name]] if name else text[0].encode())
        text = text[len(name or text[0]) :]
    return found


class Harmony(Bytes):
    """It writes what it is told."""

    def __init__(self, written: str) -> None:
        super().__init__()
        self.context_tokens = 500
        self.written = tokens(written)
        self.seen: list[str] = []
        self.vocabulary = replace(
            self.vocabulary, template=TEMPLATE, control=CONTROL, end=frozenset({254}), encode=self._tokens
        )

    def _tokens(self, text: str, specials: bool) -> list[int]:
        self.seen.append(text)
        return tokens(text) if specials else list(text.encode())

    def piece(self, token: int) -> bytes:
        return b"" if token in CONTROL.values() else super().piece(token)

    def sample(self, sampling: object, position: int) -> int:
        return self.written[position]


def write(written: str, stop_after: int | None = None, **fields: object) -> tuple[str, str, list[str]]:
    """The text, streamed and as a whole, and what was encoded; stopped once and resumed by another process if so asked."""
    given = {"id": "j", "cache_key": "j", "messages": chat("hi"), "max_tokens": 500} | fields
    job = RunnerJob.model_validate(given)
    streamed, produced, seen = "", [], []
    for limit in (stop_after, None):
        backend = Harmony(written)
        loop = TokenLoop(backend, EngineOptions(), SystemClock())
        texts: list[str] = []

        def at_boundary(
            prefilled: int, prompt: int, done: int, token: int | None, text: str, texts: list[str] = texts
        ) -> None:
            texts.append(text)
            produced.extend([token] if token is not None else [])

        outcome = loop.run(
            job,
            list(produced),
            at_boundary,
            lambda limit=limit: limit is not None and len(produced) >= limit,  # type: ignore[misc]
        )
        streamed += "".join(texts)
        seen = backend.seen
        if outcome.status == "finished":
            break
    return streamed, outcome.text, seen


THOUGHTFUL = "<|channel|>analysis<|message|>Easy: 4.<|end|><|start|>assistant<|channel|>final<|message|>It is four.<|return|>"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (THOUGHTFUL, "<think>Easy: 4.</think>It is four."),
        ("<|channel|>final<|message|>Four.<|return|>", "Four."),
        ("<|channel|>analysis<|message|>One<|end|><|start|>assistant<|channel|>analysis<|message|>, two<|return|>", "<think>One, two"),
        ("<|channel|>commentary to=functions.x <|message|>{}<|return|>", "<think>{}"),
        ("<|channel|>commentary<|message|>Wait.<|end|><|start|>assistant<|channel|>final<|message|> Four.<|return|>", "Wait. Four."),
        ("<|message|>Four.<|return|>", "Four."),
        ("no header at all<|return|>", ""),
    ],
)  # fmt: skip
def test_channels_become_thinking_and_answer(written: str, text: str) -> None:
    assert write(written)[:2] == (text, text)


def test_a_stop_anywhere_changes_nothing() -> None:
    whole = write(THOUGHTFUL)[1]
    for stop_after in range(len(tokens(THOUGHTFUL))):
        streamed, text, _ = write(THOUGHTFUL, stop_after)
        assert streamed == text == whole
    fold = ThinkingFold()
    fold.feed(whole)
    fold.end()
    assert (fold.thinking, fold.answer) == ("Easy: 4.", "It is four.")


def test_without_thinking_the_answers_channel_is_begun_for_it() -> None:
    streamed, text, seen = write("Four.<|return|>", thinking=False)
    assert streamed == text == "Four."
    assert "".join(seen).endswith("<|start|>assistant<|channel|>final<|message|>")


def test_a_structured_answer_is_the_answers_channel() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert write("{}<|return|>", json_schema=schema)[1] == "{}"


def test_a_raw_prompt_is_continued_as_it_is() -> None:
    assert write("<|channel|>final<|message|>x<|return|>", messages=(), prompt="Once")[1] == "finalx"
