"""A chat template may begin the thinking of an answer: then the answer's text says so."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from data.clock import SystemClock
from data.inference.options import EngineOptions
from data.inference.token_loop import TokenLoop
from domain.repositories.inference_runner import RunnerJob, RunnerOutcome
from domain.usecases.thinking import ThinkingFold
from tests.data.inference.engines import chat
from tests.data.inference.test_token_loop import TEMPLATE, Bytes

TEMPLATES = [f"{TEMPLATE}<think>\n", f"{TEMPLATE}<think>", f"{TEMPLATE}{{% if add_generation_prompt %}}<think>\n\n{{% endif %}}"]  # fmt: skip
CLOSED = 255


class Thinker(Bytes):
    """It writes `abab…` and at the fourth token ends its thinking with a control token."""

    def __init__(self, template: str, closing: str = "</think>") -> None:
        super().__init__()
        control = {closing: CLOSED}
        self.vocabulary = replace(self.vocabulary, template=template, control=control)

    def piece(self, token: int) -> bytes:
        return b"" if token == CLOSED else super().piece(token)

    def sample(self, sampling: object, position: int) -> int:
        return CLOSED if position == 3 else int(self.row.argmax())


def job(**fields: object) -> RunnerJob:
    given = {"id": "j", "cache_key": "j", "messages": chat("hi"), "max_tokens": 6} | fields
    return RunnerJob.model_validate(given)


def run(
    template: str, job: RunnerJob, stop_after: int | None = None, produced: Sequence[int] = ()
) -> tuple[RunnerOutcome, str, list[int]]:
    """The outcome, the streamed text and all tokens produced, by an engine that has only those given."""
    loop = TokenLoop(Thinker(template), EngineOptions(), SystemClock())
    streamed: list[str] = []
    tokens = list(produced)

    def at_boundary(prefilled: int, prompt: int, done: int, token: int | None, text: str) -> None:
        streamed.append(text)
        tokens.extend([token] if token is not None else [])

    outcome = loop.run(job, list(produced), at_boundary, lambda: len(tokens) == stop_after)
    return outcome, "".join(streamed), tokens


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_text_begins_with_the_tag_that_the_template_wrote(template: str) -> None:
    outcome, streamed, _ = run(template, job())
    assert outcome.text == streamed
    assert outcome.text.startswith("<think>a")
    fold = ThinkingFold()
    fold.feed(outcome.text)
    fold.end()
    assert (fold.thinking, fold.answer) == (outcome.text[7:10], outcome.text[18:])
    assert len(fold.answer) == 2


@pytest.mark.parametrize("template", [TEMPLATE, f"{TEMPLATE}<think>\n\n</think>\n\n", f"<think>{TEMPLATE}"])
def test_other_templates_begin_no_thinking(template: str) -> None:
    outcome, streamed, _ = run(template, job())
    assert outcome.text == streamed
    assert not outcome.text.startswith("<think>")


def test_a_raw_prompt_is_continued_as_it_is() -> None:
    outcome, _, _ = run(TEMPLATES[0], job(messages=(), prompt="<think>\n"))
    assert "think" not in outcome.text


@pytest.mark.parametrize("closing", ["</think>", "[/THINK]", "</seed:think>"])
def test_every_familys_word_becomes_the_same_tag(closing: str) -> None:
    loop = TokenLoop(Thinker(TEMPLATE, closing), EngineOptions(), SystemClock())
    outcome = loop.run(job(), [], lambda *boundary: None, lambda: False)
    assert outcome.text.count("</think>") == 1


def test_the_tag_is_there_once_however_often_the_job_is_resumed() -> None:
    whole, _, _ = run(TEMPLATES[0], job())
    for stop_after in range(6):
        stopped, streamed, produced = run(TEMPLATES[0], job(), stop_after)
        assert stopped.status == "stopped"
        resumed, more, _ = run(TEMPLATES[0], job(), produced=produced)
        assert resumed.text == streamed + more == whole.text


CHOICE = (
    TEMPLATE
    + "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
)
"""As Qwen3's: the model begins to think by itself, unless it is told that it has."""
OTHER_CHOICE = TEMPLATE + "{% if thinking is defined and not thinking %}Answer at once.{% endif %}"
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("template", "asked", "prompt"),
    [
        (CHOICE, {}, "hi"),
        (CHOICE, {"thinking": False}, "hi<think>\n\n</think>\n\n"),
        (CHOICE, {"json_schema": SCHEMA}, "hi<think>\n\n</think>\n\n"),
        (OTHER_CHOICE, {}, "hi"),
        (OTHER_CHOICE, {"thinking": False}, "hiAnswer at once."),
        (TEMPLATES[0], {"thinking": False}, "hi<think>\n\n</think>\n\n"),
        (TEMPLATES[0], {"json_schema": SCHEMA}, "hi<think>\n\n</think>\n\n"),
        (TEMPLATE, {"thinking": False}, "hi"),
    ],
)
def test_who_wants_no_thinking_asks_for_the_answer_at_once(
    template: str, asked: dict[str, object], prompt: str
) -> None:
    backend = Thinker(template)
    loop = TokenLoop(backend, EngineOptions(), SystemClock())
    seen: list[str] = []
    encode = backend.vocabulary.encode

    def watched(text: str, specials: bool) -> list[int]:
        seen.append(text)
        return encode(text, specials)

    loop._backend.vocabulary = replace(backend.vocabulary, encode=watched)
    outcome = loop.run(job(**asked), [], lambda *boundary: None, lambda: False)
    assert seen[0] == prompt
    assert not outcome.text.startswith("<think>")
    assert outcome.text == "{}" or "json_schema" not in asked
