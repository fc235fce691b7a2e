"""Putting text that somebody else wrote before the model, so that it stays material.

Notes, drafts and questions may say anything, also "ignore your instructions". They are only ever part of a user
message, between marks that they cannot close; system messages are the program's (and the user's) alone.
"""

import re

_MARKS = re.compile(r"<(?=\s*/?\s*(?:note|notes|draft|selection|question|system)\b)", re.IGNORECASE)


def fenced(mark: str, text: str) -> str:
    """`text` between `<mark>` and `</mark>`; marks inside it become quotation marks of another shape."""
    return f"<{mark}>\n{unmarked(text).strip()}\n</{mark}>"


def unmarked(text: str) -> str:
    """The text with every mark of ours made harmless."""
    return _MARKS.sub("‹", text)
