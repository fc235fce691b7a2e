"""Words of a text, the same for both databases: folded, without accents, and for every script.

Scripts that are written without spaces, and emoji, are cut into overlapping pairs of characters, as Lucene's CJK analyzer does, so that
a word within a sentence is found.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

from domain.folding import fold
from domain.plain_text import plain_text, without_title

MAX_WORD = 64
MAX_QUERY_WORDS = 16
MAX_QUERY_CHARACTERS = 1_000
SNIPPET = 160
SNIPPET_REACH = 200_000

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u2600-\u27bf\U0001f000-\U0001faff\U00020000-\U0003ffff]+"
)

_ASCII_WORD = re.compile("[0-9a-z]+")
"""What the pattern of all scripts finds there, in a third of the time."""


def words(text: str) -> Iterator[str]:
    """In order, with repetitions."""
    folded = fold(text)
    if folded.isascii():
        yield from (word[:MAX_WORD] for word in _ASCII_WORD.findall(folded))
        return
    for word in _word_pattern().findall(folded):
        if word.isascii() or not _UNSPACED.search(word):
            yield word[:MAX_WORD]
        else:
            for part, unspaced in _parts(word):
                yield from _pairs(part) if unspaced else (part[:MAX_WORD],)


def query_words(query: str) -> list[tuple[str, bool]]:
    """(word, whether it is the beginning of one) that a note must all have; none if the query has no words."""
    found: dict[tuple[str, bool], None] = {}
    for word in _word_pattern().findall(fold(query[:MAX_QUERY_CHARACTERS])):
        for part, unspaced in _parts(word):
            if not unspaced or len(part) == 1:
                found[part[:MAX_WORD], True] = None
            else:
                found.update({(pair, False): None for pair in _pairs(part)[:-1]})
    return list(found)[:MAX_QUERY_WORDS]


def snippet(title: str, text: str, wanted: Sequence[tuple[str, bool]]) -> str:
    """The words around the first match, in one line, without Markdown's marks; the beginning if there is none."""
    text = without_title(text[:SNIPPET_REACH], title)
    at = _first_match(text, wanted)
    start = max(0, at - SNIPPET // 3)
    if start > 0:
        space = text.find(" ", start, at)
        start = space + 1 if space >= 0 else start
    # More than is shown, so that no link at the end is cut in half.
    line = " ".join(plain_text(text[start : start + 2 * SNIPPET]).split())[:SNIPPET].rstrip()
    before = "…" if start > 0 else ""
    after = "…" if start + SNIPPET < len(text) else ""
    return f"{before}{line}{after}"


def _first_match(text: str, wanted: Sequence[tuple[str, bool]]) -> int:
    if not wanted:
        return 0
    folded = fold(text)
    spaced = "|".join(re.escape(word) for word, beginning in wanted if beginning)
    unspaced = "|".join(re.escape(word) for word, beginning in wanted if not beginning)
    pattern = "|".join(part for part in (rf"(?<!\w)(?:{spaced})" if spaced else "", unspaced) if part)
    match = re.search(pattern, folded)
    if match is None:
        return 0
    if len(folded) == len(text):
        return match.start()
    # Folding changed lengths: count characters until as much of the folded text is used up.
    used = 0
    for at, character in enumerate(text):
        if used >= match.start():
            return at
        used += len(fold(character))
    return 0


def _parts(word: str) -> Iterator[tuple[str, bool]]:
    """A word, cut where a script without spaces begins or ends."""
    at = 0
    for match in _UNSPACED.finditer(word):
        if match.start() > at:
            yield word[at : match.start()], False
        yield match.group(), True
        at = match.end()
    if at < len(word):
        yield word[at:], False


def _pairs(part: str) -> list[str]:
    """Every pair, and the last character alone, so that each character begins something that is indexed."""
    return [part[at : at + 2] for at in range(len(part))]


@cache
def _word_pattern() -> re.Pattern[str]:
    """Letters, digits and the marks that belong to them; Python's \\w leaves the marks out."""
    marks = "".join(
        re.escape(chr(point)) for point in range(0x300, 0x10000) if unicodedata.category(chr(point))[0] == "M"
    )
    emoji = "\u2600-\u27bf\U0001f000-\U0001faff"
    return re.compile(rf"(?:[^\W_]|[{marks}{emoji}])+")
