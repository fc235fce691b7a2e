"""Prompts of known size that share no beginning, and the background load of the design note's bug."""

import asyncio
from collections.abc import Sequence

from data.scheduling.dispatcher import Dispatcher
from domain.entities.llm import GenerationRequest, LlmTaskKind, Message
from domain.errors import JobCancelled
from domain.repositories.scheduler_coordinator import JobHandle

_SENTENCES = (
    "The ferry to the island leaves at seven and takes the mail along.",
    "Rye needs less water than wheat and forgives a poor soil.",
    "Marta wants the report on the bridge before the end of the month.",
    "A short walk after lunch helped more than the second coffee.",
    "The old lens has a scratch near the rim that shows against the light.",
    "Bread dough that rests overnight in the cold tastes better.",
    "Ask the library whether the map of 1911 may be copied.",
    "The meeting moved to Thursday because the hall is being painted.",
)


def note(number: int, sentences: int) -> str:
    """About 14 tokens a sentence. The number comes first, so that no two notes share a beginning worth keeping."""
    lines = (_SENTENCES[(number + at) % len(_SENTENCES)] for at in range(sentences))
    return f"{number:05d}. {' '.join(lines)}"


def chat(model: str, number: int, *, max_tokens: int) -> GenerationRequest:
    """A conversation's first turn of about 100 tokens; its system message, too, begins with the number."""
    question = (
        f"Read these notes: {note(number, 3)} Then write a long story with many paragraphs about a fisherman "
        "who goes to sea every morning."
    )
    messages = (
        Message(role="system", content=f"{number:05d}. You are a friendly assistant who answers at length."),
        Message(role="user", content=question),
    )
    return GenerationRequest(
        kind=LlmTaskKind.CHAT,
        flow=f"conversation {number}",
        model=model,
        messages=messages,
        max_tokens=max_tokens,
    )


def extract(model: str, number: int) -> GenerationRequest:
    """Reads much and writes little: about 190 tokens in, at most 48 out."""
    prompt = f"{note(number, 12)}\nThe most important facts in these notes are:\n1."
    return _background(LlmTaskKind.EXTRACT, f"note {number}", model, prompt, 48)


def card(model: str, number: int) -> GenerationRequest:
    """A card of the deck: about 75 tokens in, at most 80 out."""
    prompt = f"{note(number, 4)}\nA friendly summary of these notes:\n"
    return _background(LlmTaskKind.NATARAJ, "deck", model, prompt, 80)


def gana(model: str, number: int, name: str) -> GenerationRequest:
    """About 50 tokens in, at most 120 out."""
    prompt = f"{note(number, 2)}\nA long letter about this:\nDear friend,"
    return _background(LlmTaskKind.GANA, name, model, prompt, 120)


def backlog(model: str, first: int, each: int = 4) -> list[GenerationRequest]:
    """A deck that fills, a backfill and two Ganas: `each` jobs of the first two and half as many of each Gana."""
    numbers = range(first, first + each)
    ganas = [gana(model, number, name) for number in numbers[: max(1, each // 2)] for name in ("ram", "sita")]
    return [*(extract(model, n) for n in numbers), *(card(model, n + each) for n in numbers), *ganas]


async def cancel(handles: Sequence[JobHandle]) -> None:
    """Ends the jobs and returns when the engine has let go of them."""
    for handle in handles:
        handle.cancel()
    outcomes = await asyncio.gather(*(handle.result() for handle in handles), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, JobCancelled):
            raise outcome


def submit(dispatcher: Dispatcher, requests: Sequence[GenerationRequest]) -> list[JobHandle]:
    return [dispatcher.submit(request) for request in requests]


def _background(kind: LlmTaskKind, flow: str, model: str, prompt: str, max_tokens: int) -> GenerationRequest:
    return GenerationRequest(kind=kind, flow=flow, model=model, prompt=prompt, max_tokens=max_tokens)
