"""The words of the validation library in those of a user."""

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


def plain_reason(message: str) -> str:
    """Why a value was refused; a message that is not known stays as it is."""
    for pattern, plain in _PHRASES:
        if match := pattern.match(message):
            return plain + message[match.end() :]
    return message
