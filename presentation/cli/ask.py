"""`uniun ask`: one question, one answer."""

import json
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.entities.conversation import Citation
from domain.entities.llm import GenerationEvent, GenerationResult, LlmTaskKind, Sampling, TextDelta
from domain.errors import InvalidRequest, InvalidSchema, UniunError
from domain.usecases.citations import cited
from domain.usecases.thinking import ThinkingFold, answer_only
from presentation.cli.openers import Controllers
from presentation.cli.progress import WaitingLine, ensure
from presentation.cli.terminal import read_piped, say, write
from presentation.counting import counted

INPUT_LIMIT = 10_000_000
"""Bytes of piped text; more would fit in no model's context."""


@dataclass(frozen=True)
class Question:
    """What was typed."""

    text: str | None
    kind: str
    model: str | None
    system: str | None
    schema: str | None
    max_tokens: int
    temperature: float | None
    seed: int | None
    notes: bool
    manas: str | None


async def ask(
    open_controllers: Callable[[], AbstractAsyncContextManager[Controllers]], question: Question
) -> None:
    """Streams the answer, without the thinking before it, to stdout; what else there is to say goes to stderr."""
    text = read_question(question.text)
    schema = read_schema(question.schema) if question.schema is not None else None
    fold = ThinkingFold()
    async with open_controllers() as controllers:
        model = await ensure(controllers.models, question.model)
        with WaitingLine(f"waiting for {model.name}") as waiting:

            def show(event: GenerationEvent) -> None:
                if not isinstance(event, TextDelta):
                    waiting.tell(event)
                    return
                said, thought = fold.feed(event.text)
                if said:
                    waiting.close()
                    write(said)
                elif thought:
                    waiting.show("thinking")

            result, after = await _answer(controllers, question, text, model.name, schema, show)
            waiting.close()
            write(fold.end()[0])
    if not fold.answer.endswith("\n"):
        write("\n")
    if schema is not None and not _is_json(fold.answer):
        raise UniunError(
            f"The answer is not complete JSON: it ended after {counted(result.usage.completion_tokens, 'token')}. "
            f"Ask again with a higher --max-tokens; it was {question.max_tokens}."
        )
    if result.finish_reason == "length":
        say(
            f"the answer was cut after {counted(result.usage.completion_tokens, 'token')}; --max-tokens allows more."
        )
    write(after)


def _sampling(question: Question) -> Sampling:
    """Holds what was said only."""
    said = {"temperature": question.temperature, "seed": question.seed}
    return Sampling(**{name: value for name, value in said.items() if value is not None})


async def _answer(
    controllers: Controllers,
    question: Question,
    text: str,
    model: str,
    schema: dict[str, Any] | None,
    show: Callable[[GenerationEvent], None],
) -> tuple[GenerationResult, str]:
    """The result, and what is to be printed after it."""
    options: dict[str, Any] = {
        "kind": LlmTaskKind(question.kind),
        "system": question.system,
        "on_event": show,
        "model": model,
        "json_schema": schema,
        "max_tokens": question.max_tokens,
        "sampling": _sampling(question),
    }
    if not question.notes:
        return await controllers.ask.ask(text, **options), ""
    answer = await controllers.ask.ask_notes(text, manas=question.manas, **options)
    if answer.hindrance is not None:
        say(f"the notes were searched by words alone: {answer.hindrance}")
    # After JSON there must be nothing.
    return answer.result, sources(answer_only(answer.result.text), answer.citations) if schema is None else ""


def sources(answer: str, citations: Sequence[Citation]) -> str:
    """The notes that an answer cites, a line each, below a blank one; if it cites none, those that it was given."""
    if not citations:
        return ""
    named = cited(answer, tuple(citations))
    if not named:
        titles = "; ".join(" ".join(one.title.split()) or "Untitled" for one in citations)
        return f"\nLooked at, not cited: {titles}\n"
    return "\n" + "".join(f"[{one.number}] {' '.join(one.title.split())}{writer(one)}\n" for one in named)


def writer(citation: Citation) -> str:
    """That a Gana wrote the note; empty for the user's own."""
    if citation.written_by is None:
        return ""
    return f" (written by the Gana {citation.written_by})" if citation.written_by else " (written by a Gana)"


def read_question(text: str | None) -> str:
    """The argument, stdin, or both: what is piped in follows what was typed."""
    if text is None and sys.stdin.isatty():
        raise InvalidRequest("There is no question. Type it after `uniun ask`, or pipe it in.")
    if text is None or text == "-":
        question = read_piped(INPUT_LIMIT)
    elif _is_piped():
        piped = read_piped(INPUT_LIMIT)
        if not piped.strip():
            say("nothing was piped in; the question is what was typed.")
        question = "\n\n".join(part for part in (text, piped) if part.strip())
    else:
        question = text
    if not question.strip():
        raise InvalidRequest("The question is empty. Type it after `uniun ask`, or pipe it in.")
    return question


def _is_piped() -> bool:
    """A pipe or a file; not a terminal, and not what a service manager or a scheduler leaves open."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def read_schema(given: str) -> dict[str, Any]:
    """JSON text, recognised by its brace, or the name of a file that holds it. Raises `InvalidSchema`."""
    is_text = given.lstrip().startswith("{")
    source = "--schema" if is_text else given
    try:
        schema = json.loads(given if is_text else Path(given).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSchema(
            f'--schema takes a JSON object, as in {{"type": "object"}}, or a file that holds one; {given[:200]!r} is no '
            f"object, and as a file it cannot be read: {error.strerror}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"The schema in {source} is not JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise InvalidSchema(f'The schema in {source} must be a JSON object, as in {{"type": "object"}}.')
    return schema


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
