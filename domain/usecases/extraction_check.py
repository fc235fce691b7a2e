"""From a model's answer to what is kept of it: well formed, tidy, and said by the note."""

import re

from pydantic import ValidationError

from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.llm import GenerationResult
from domain.prompts.extraction import MOST, SUMMARY_CHARACTERS
from domain.reasons import plain_reason
from domain.usecases.passages import keywords

_GROUNDED = 0.5
"""Share of its words that a name, or a summary, must have from the note."""
_NAME_WORDS = 8
"""A longer name is a sentence that the model did not find the end of."""
_STEM = 5
"""Characters that two forms of one word share, roughly: steeped, steeping."""


class BadAnswer(Exception):
    """The model's answer is no extraction; says why, and what to do."""


def checked(result: GenerationResult, title: str, text: str) -> Extraction:
    """Raises `BadAnswer`.

    Names that the note does not have are dropped, with their relations: small models write down what they have read
    elsewhere. A summary of another note gives way to the note's own first sentence.
    """
    said = _parsed(result)
    note = _stems(f"{title}\n{text}", limit=len(text))
    concepts: dict[str, ConceptClaim] = {}
    for claim in said.concepts[:MOST]:
        name = _name(claim.name)
        if _is_from(name, note):
            concepts.setdefault(key(name), ConceptClaim(name=name, type=_type(claim.type)))
    relations: dict[tuple[str, str, str], RelationClaim] = {}
    for said_of in said.relations[:MOST]:
        source, verb, target = _name(said_of.source), tidy(said_of.verb), _name(said_of.target)
        if verb and key(source) != key(target) and _is_from(source, note) and _is_from(target, note):
            relation = RelationClaim(source=source, verb=verb, target=target)
            relations.setdefault((key(source), key(verb), key(target)), relation)
            for end in (source, target):
                concepts.setdefault(key(end), ConceptClaim(name=end))
    summary = tidy(said.summary)
    return Extraction(
        concepts=tuple(concepts.values()),
        relations=tuple(relations.values()),
        summary=summary if _is_from(summary, note) else _first_sentence(title, text),
    )


def key(name: str) -> str:
    """What two ways of writing a name have in common."""
    return name.casefold()


def tidy(text: str) -> str:
    """One line without control characters, which a database may refuse."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _name(said: str) -> str:
    """Empty if it is none: a sentence, a gap to fill in, or a piece of the JSON around it."""
    name = tidy(said).strip(",;: ")
    return name if len(name.split()) <= _NAME_WORDS and not set(name) & set("{}[]") else ""


def _type(said: str) -> str:
    """One word; small models write down what they were told of it instead."""
    word = tidy(said).strip(".,;: ")
    return word if word.isalpha() else "thing"


def _parsed(result: GenerationResult) -> Extraction:
    if result.finish_reason == "length":
        raise BadAnswer(
            f"The model's answer had no end after {result.usage.completion_tokens} tokens. "
            "Try again with: uniun notes failures --retry"
        )
    try:
        return Extraction.model_validate_json(result.text)
    except ValidationError as error:
        reason = plain_reason(error.errors(include_url=False, include_input=False)[0]["msg"])
        raise BadAnswer(
            f"The model's answer was no extraction ({reason}). Try a larger model, then: uniun notes failures --retry"
        ) from None


def _stems(text: str, limit: int) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in keywords(text, limit=max(limit, 12)))


def _is_from(said: str, note: frozenset[str]) -> bool:
    stems = _stems(said, limit=100)
    return bool(stems) and len(stems & note) >= _GROUNDED * len(stems)


def _first_sentence(title: str, text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    prose = next((line for line in lines if line and not line.startswith(("#", "```", "---", "|"))), title)
    sentence = re.split(r"(?<=[.!?。])\s", tidy(prose), maxsplit=1)[0]
    return sentence if len(sentence) <= SUMMARY_CHARACTERS else f"{sentence[: SUMMARY_CHARACTERS - 1]}…"
