"""When two names mean the same concept: case, accents, punctuation, articles and plurals do not count."""

import re
from collections.abc import Iterable

from data.database.columns import storable
from domain.folding import fold

MAX_ALIASES = 20
_KEY = 200
# What tells C++ from C# and node.js from node js stays; the rest separates words.
_SEPARATORS = re.compile(r"[^\w+#&.]+|\.(?!\w)|(?<!\w)\.")
_ARTICLES = ("the ", "a ", "an ")
_NO_PLURALS = frozenset({"news", "lens", "series", "species"})
_ACRONYM = re.compile(r"^(.*\S)\s*\(\s*([^()\s]{2,10})\s*\)$")


def concept_keys(name: str) -> tuple[str, ...]:
    """The key of a name, and further keys that the name itself explains: `Large Language Model (LLM)` has two.

    Names that share a key mean one concept. Empty if nothing of the name is left.
    """
    match = _ACRONYM.match(name.strip())
    names = match.groups() if match is not None and _explains(match[1], match[2]) else (name,)
    return tuple(dict.fromkeys(key for key in map(_key, names) if key))


def kept_name(said: str) -> str:
    """A name, or a verb, as the graph keeps it."""
    return storable(" ".join(said.split()))


def other_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Aliases of a concept; a name that is only written in another way is none."""
    others = {fold(each): each for each in sorted(names, reverse=True)}
    others.pop(fold(name), None)
    return tuple(sorted(others.values())[:MAX_ALIASES])


def _key(name: str) -> str:
    # The plural of an acronym is told by its small s: IDs.
    name = re.sub(r"\b([A-Z]{2,})s\b", r"\1", name)
    key = " ".join(_SEPARATORS.sub(" ", fold(name)).replace("_", " ").split())
    for article in _ARTICLES:
        key = key.removeprefix(article)
    head, space, last = key.rpartition(" ")
    return f"{head}{space}{_singular(last)}"[:_KEY]


def _singular(word: str) -> str:
    """English, roughly: what matters is that both numbers come out equal, not that the result is a word."""
    if len(word) < 4 or not word.isascii() or not word.isalpha() or word in _NO_PLURALS:
        return word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith("ie"):
        return word[:-2] + "y"
    return re.sub(r"(ch|sh|s|x|z)e$", r"\1", word)


def _explains(words: str, short: str) -> bool:
    """Whether the letters are the words' first ones."""
    initials = "".join(word[0] for word in re.split(r"[\s-]+", words) if word)
    letters = short[:-1] if short.endswith("s") and short[:-1].isupper() else short
    return len(letters) > 1 and letters.casefold() == initials.casefold()
