"""The title of a conversation: the first words of its first question. Free, at once, and never wrong."""

import re

from domain.plain_text import shortened

TITLE_CHARACTERS = 60
UNTITLED = "New conversation"


def title_of(question: str) -> str:
    """One line of at most 60 characters, cut between words where there is one."""
    line = re.sub(r"\s+", " ", question).strip().lstrip("#>-* ").strip()
    return shortened(line, TITLE_CHARACTERS) or UNTITLED
