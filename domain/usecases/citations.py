"""Which notes an answer may refer to, and by which numbers."""

import re
import unicodedata
from collections.abc import Iterable

from domain.entities.conversation import ChatMessage, Citation
from domain.entities.knowledge import RetrievedContext

_CITED = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


def citations_of(context: RetrievedContext | None) -> tuple[Citation, ...]:
    """The notes that were found for an answer, numbered as in the context."""
    if context is None:
        return ()
    return tuple(
        Citation(
            number=passage.number,
            note_id=passage.note_id,
            title=passage.title,
            written_by=passage.written_by,
        )
        for passage in context.citations
    )


def cited(answer: str, citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Those that the answer refers to. From the others it may have been written too, but it does not say so."""
    numbers = {int(number) for group in _CITED.findall(answer) for number in group.split(",")}
    return tuple(citation for citation in citations if citation.number in numbers)


def cited_before(path: Iterable[ChatMessage]) -> tuple[Citation, ...]:
    """What the answers of this path refer to: each note once, under the number that it keeps from here on.

    In conversations from before notes kept their numbers, one number may stand for several notes: the first keeps it.
    """
    notes: set[str] = set()
    numbers: dict[int, Citation] = {}
    for message in path:
        for citation in cited(message.content, message.citations):
            if citation.note_id not in notes and citation.number not in numbers:
                notes.add(citation.note_id)
                numbers[citation.number] = citation
    return tuple(numbers.values())


def only_cites(answer: str, citations: tuple[Citation, ...]) -> bool:
    """Whether it names notes and says nothing: "[1]" or "[1], [3].". A sign, as "✅" or "√", says something."""
    rest = _CITED.sub("", answer)
    said = any(not char.isspace() and not unicodedata.category(char).startswith("P") for char in rest)
    return not said and bool(cited(answer, citations))
