"""The title of a conversation: the first words of its first question. Free, at once, and never wrong."""

import re

TITLE_CHARACTERS = 60
UNTITLED = "New conversation"


def title_of(question: str) -> str:
    """One line of at most 60 characters, cut between words where there is one."""
    line = re.sub(r"\s+", " ", question).strip().lstrip("#>-* ").strip()
    if len(line) <= TITLE_CHARACTERS:
        return line or UNTITLED
    cut = line[: TITLE_CHARACTERS - 1]
    words = cut.rpartition(" ")[0]
    return f"{(words if len(words) > TITLE_CHARACTERS // 2 else cut).rstrip(' ,;:.')}…"
