"""Words of a question, and the passages of a note that share most of them."""

import re
from collections.abc import Collection, Iterable, Set
from typing import NamedTuple

from domain.usecases.text_budget import cut_end, text_tokens

BLOCK_CHARACTERS = 800
SCANNED_CHARACTERS = 100_000
"""Of one note. Looking through more would make an answer wait, for a note that is no note any more."""
GAP = "\n[…]\n"
_PHRASE_WORDS, _LONGEST_PHRASE = 40, 4
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese."""
_FUNCTION_WORDS = (
    "a about all am an and any are as at be been but by can could did do does for from give had has have how i if in "
    "into is it its know many me more most much my no not note notes of on or our please say she he should so some "
    "tell than that the their them then there these they this those to too us was we were what when where which who "
    "whom whose why will with would write you your"
)
_STOPWORDS = frozenset(_FUNCTION_WORDS.split())


def words(text: str) -> list[str]:
    """Words in order, without case and plural; scripts without spaces in pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if unspaced(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        else:
            found.append(singular(word))
    return found


def keywords(question: str, limit: int = 12) -> tuple[str, ...]:
    """Words that carry meaning, as they were typed but for case, each once, in order."""
    spoken = dict.fromkeys(word for word in _WORD.findall(question.casefold()) if word not in _STOPWORDS)
    return tuple(word for word in spoken if len(word) > 1 or not word.isascii())[:limit]


def phrases(question: str) -> tuple[str, ...]:
    """Runs of up to four of its words, each of which may be a name; none of function words alone."""
    spoken = _WORD.findall(question)[:_PHRASE_WORDS]
    found = dict.fromkeys(
        " ".join(spoken[at : at + length])
        for at in range(len(spoken))
        for length in range(1, _LONGEST_PHRASE + 1)
        if any(word.casefold() not in _STOPWORDS for word in spoken[at : at + length])
    )
    return tuple(found)


def unspaced(word: str) -> bool:
    """Whether it is of a script without spaces, and so may be many words."""
    return _UNSPACED.search(word) is not None


def singular(word: str) -> str:
    """English plurals, and no more: the embedder knows the rest."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class _Block(NamedTuple):
    at: int
    text: str
    shared: int
    """Words of the question in it."""


def best_passages(text: str, asked: Collection[str], budget_tokens: int) -> str:
    """The whole text if it fits; else the blocks that share most words with the question, in the order of the text.

    Where no block shares one, the note was found by its meaning, and its beginning stands for it.
    """
    text = text.strip()
    if len(text) <= 4 * budget_tokens and text_tokens(text) <= budget_tokens:
        return text
    wanted = frozenset(asked)
    scanned = enumerate(_blocks(text[:SCANNED_CHARACTERS]))
    blocks = [_Block(at, block, len(wanted.intersection(words(block)))) for at, block in scanned]
    blocks.sort(key=lambda block: (-block.shared, block.at))
    chosen: list[_Block] = []
    left = budget_tokens
    for block in blocks:
        cost = text_tokens(block.text) + text_tokens(GAP)
        if not block.shared or cost > left:
            continue
        chosen.append(block)
        left -= cost
    if not chosen:
        return cut_end(blocks[0].text if blocks[0].shared else text, budget_tokens)
    parts: list[str] = []
    before = -1
    for block in sorted(chosen):
        parts.append("\n\n" if block.at == before + 1 and parts else GAP if parts else "")
        parts.append(block.text)
        before = block.at
    return "".join(parts)


def similarity(one: Set[str], other: Set[str]) -> float:
    """Jaccard's: 1 for the same words, 0 for none in common."""
    return len(one & other) / (len(one | other) or 1)


def _blocks(text: str) -> list[str]:
    """Paragraphs, a heading with the one below it; long ones cut at a line or a sentence."""
    blocks: list[str] = []
    heading = ""
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = paragraph.strip()
        if paragraph.startswith("#") and "\n" not in paragraph:
            heading = paragraph
            continue
        if paragraph:
            blocks += _pieces(f"{heading}\n{paragraph}" if heading else paragraph)
            heading = ""
    return [*blocks, heading] if heading else blocks


def _pieces(paragraph: str) -> Iterable[str]:
    while len(paragraph) > BLOCK_CHARACTERS:
        reach = paragraph[:BLOCK_CHARACTERS]
        cut = max(reach.rfind("\n"), reach.rfind(". ") + 1, reach.rfind("。") + 1)
        if cut < BLOCK_CHARACTERS // 2:
            cut = reach.rfind(" ")
        if cut < BLOCK_CHARACTERS // 2:
            cut = BLOCK_CHARACTERS
        yield paragraph[:cut].strip()
        paragraph = paragraph[cut:].strip()
    if paragraph:
        yield paragraph
