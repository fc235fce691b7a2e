"""From a model's answer to what is kept of it: well formed, tidy, and said by the note."""

import re
from itertools import takewhile

from pydantic import ValidationError

from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.llm import GenerationResult
from domain.folding import fold
from domain.plain_text import shortened
from domain.prompts.extraction import MOST, SUMMARY_CHARACTERS
from domain.reasons import plain_reason
from domain.usecases.passages import keywords, singular, unspaced

_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
_GROUNDED = 0.5
"""Share of its words that a summary must have from the note; a name must have them all."""
_NAME_WORDS = 8
"""A longer name is a sentence that the model did not find the end of."""
_SENTENCE_WORDS = 4
"""So many words and one of these verbs among them are a sentence, too."""
_FINITE = frozenset(("is", "are", "was", "were", "has", "have", "had"))
_STEM = 4
"""Characters that two forms of one word share at least: steeped, steeping. And …"""
_STEM_SHARE = 0.6
"""… so much of the longer one: Schnecke, Schnecken, and not Schnenklein, which a small model made of them."""
_MOST_ALIKE = 200
"""Words with one stem that are looked at: a note may be megabytes of them."""


class BadAnswer(Exception):
    """The model's answer is no extraction; says why, and what to do."""


def checked(result: GenerationResult, title: str, text: str) -> Extraction:
    """Raises `BadAnswer`.

    Names that the note does not have are dropped, with their relations: small models write down what they have read
    elsewhere. A summary of another note gives way to the note's own first sentence.
    """
    said = _parsed(result)
    note = _Said(f"{title}\n{text}")
    concepts: dict[str, ConceptClaim] = {}
    for claim in said.concepts[:MOST]:
        name = _name(claim.name)
        if note.has_name(name):
            concepts.setdefault(key(name), ConceptClaim(name=name, type=_type(claim.type)))
    relations: dict[tuple[str, str, str], RelationClaim] = {}
    for said_of in said.relations[:MOST]:
        source, verb, target = _name(said_of.source), tidy(said_of.verb), _name(said_of.target)
        if verb and key(source) != key(target) and note.has_name(source) and note.has_name(target):
            relation = RelationClaim(source=source, verb=verb, target=target)
            relations.setdefault((key(source), key(verb), key(target)), relation)
            for end in (source, target):
                concepts.setdefault(key(end), ConceptClaim(name=end))
    summary = _summary(said.summary)
    return Extraction(
        concepts=tuple(concepts.values()),
        relations=tuple(relations.values()),
        summary=summary if note.has_gist(summary) else _first_sentence(title, text),
    )


def key(name: str) -> str:
    """What two ways of writing a name have in common."""
    return fold(name)


def tidy(text: str) -> str:
    """One line without control characters, which a database may refuse."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _name(said: str) -> str:
    """Empty if it is none: a sentence, a gap to fill in, or a piece of the JSON around it."""
    name = tidy(said).strip(",;: ")
    words = name.casefold().split()
    sentence = len(words) > _NAME_WORDS or (len(words) >= _SENTENCE_WORDS and not _FINITE.isdisjoint(words))
    return "" if sentence or set(name) & set("{}[]") else name


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


class _Said:
    """The words of a note."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.casefold().split())
        words = keywords(text, limit=len(text))
        self._words = {singular(word) for word in words}
        self._alike: dict[str, list[str]] = {}
        for word in words:
            alike = self._alike.setdefault(word[:_STEM], [])
            if len(alike) < _MOST_ALIKE:
                alike.append(word)

    def has_name(self, name: str) -> bool:
        """Whether the note has all of its words, in some form."""
        said = keywords(name, limit=100)
        return bool(said) and all(self._has(word) for word in said)

    def has_gist(self, summary: str) -> bool:
        """Whether the note has most of its words."""
        said = keywords(summary, limit=100)
        return bool(said) and sum(self._has(word) for word in said) >= _GROUNDED * len(said)

    def _has(self, word: str) -> bool:
        if singular(word) in self._words or (unspaced(word) and word in self._text):
            return True
        return not word.isdigit() and any(
            _one_word(word, other) for other in self._alike.get(word[:_STEM], ())
        )


def _one_word(some: str, other: str) -> bool:
    """Whether two words are forms of one, roughly."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(some, other, strict=False)))
    return shared >= max(_STEM, _STEM_SHARE * max(len(some), len(other)))


def _first_sentence(title: str, text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    prose = next((line for line in lines if line and not line.startswith(("#", "```", "---", "|"))), title)
    sentence = re.split(r"(?<=[.!?。])\s", tidy(prose), maxsplit=1)[0]
    return shortened(sentence, SUMMARY_CHARACTERS)


def _summary(said: str) -> str:
    """One that the schema's length has ended in the middle of a sentence, and perhaps of a word, shows that."""
    summary = tidy(said)
    if len(said) < SUMMARY_CHARACTERS or summary.endswith(_SENTENCE_ENDS):
        return summary
    return shortened(summary, min(SUMMARY_CHARACTERS, len(summary) - 1))
