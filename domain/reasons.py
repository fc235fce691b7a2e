"""The words of the validation library, and of the system, in those of a user."""

import re

_PHRASES = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"Value error, ", ""),
        (r"Input should be a valid integer\b.*", "it should be a whole number"),
        (r"Input should be a valid (number|decimal)\b.*", "it should be a number"),
        (r"Input should be a valid boolean\b.*", "it should be true or false"),
        (r"Input should be a valid string\b.*", "it should be text"),
        (r"Input should be a valid (list|tuple|array|set)\b.*", "it should be a list"),
        (r"Input should be (a valid dictionary|an object)\b.*", "it should be a group of named values"),
        (r"Input should be ", "it should be "),
        (r"String should have at least 1 character\b.*", "it is empty"),
        (r"String should have at most ", "it should have at most "),
        (r"(List|Tuple) should have at least 1 item\b.*", "it is empty"),
        (r"(List|Tuple) should have at most (\d+) items?\b.*", "it has too many entries"),
        (r"Extra inputs are not permitted", "there is nothing of this name"),
        (r"Field required", "it is missing"),
        (r"Invalid JSON: ", "it is no JSON: "),
    )
)
_NO_THREAD = ("can't start new thread", "Resource temporarily unavailable")
"""Python's own words; libgomp, OpenBLAS and C++ hand on the system's."""


def plain_reason(message: str) -> str:
    """Why a value was refused; a message that is not known stays as it is."""
    for pattern, plain in _PHRASES:
        if match := pattern.match(message):
            return plain + message[match.end() :]
    return message


def thread_limit(words: str) -> str | None:
    """What a process says that was given no thread or no process, if this is it."""
    if not any(sign in words for sign in _NO_THREAD):
        return None
    return (
        "The system lets this user, or this container, have no more processes and threads. "
        "End other programs, or raise the limit (`ulimit -u`)."
    )
