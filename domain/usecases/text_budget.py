"""How many tokens a text has, and how to cut it to so many."""

_ASCII_PER_TOKEN = 3
_HEAD_SHARE = 2 / 3
"""A note says at its beginning what it is about, and often at its end what came of it."""
_LEFT_OUT = "\n\n[… the middle is left out: {count} characters …]\n\n"
_LEFT_OUT_TOKENS = 24


def text_tokens(text: str) -> int:
    """Tokens of a text, guessed without a tokenizer, on the high side.

    English has about four ASCII characters a token; text that a tokenizer has not seen falls to one byte a token.
    """
    size = len(text.encode("utf-8", "replace"))
    ascii_count = len(text.encode("ascii", "ignore"))
    return size - ascii_count + ascii_count // _ASCII_PER_TOKEN


def cut_middle(text: str, budget_tokens: int) -> str:
    """The text if it fits, else its head and its tail with a line between them that says how much is left out."""
    if _fitting(text, budget_tokens) == len(text):
        return text
    room = max(0, budget_tokens - _LEFT_OUT_TOKENS)
    head = cut_end(text, int(room * _HEAD_SHARE))
    tail = _last(text, room - int(room * _HEAD_SHARE))
    return head + _LEFT_OUT.format(count=len(text) - len(head) - len(tail)) + tail


def cut_end(text: str, budget_tokens: int) -> str:
    """The longest beginning that fits, back to the end of a line or a word if there is one nearby."""
    at = _fitting(text, budget_tokens)
    if at == len(text):
        return text
    cut = text[:at]
    for end in ("\n", " "):
        before = cut.rfind(end)
        if before > at * 3 // 4:
            return cut[:before]
    return cut


def _last(text: str, budget_tokens: int) -> str:
    reach = text[max(0, len(text) - budget_tokens * _ASCII_PER_TOKEN) :]
    at = len(reach) - _fitting(reach[::-1], budget_tokens)
    cut = reach[at:]
    for start in ("\n", " "):
        after = cut.find(start)
        if 0 <= after < len(cut) // 4:
            return cut[after + 1 :]
    return cut


def _fitting(text: str, budget_tokens: int) -> int:
    """Characters of the longest beginning within the budget; looks no further than the budget reaches."""
    thirds = budget_tokens * _ASCII_PER_TOKEN
    for at, character in enumerate(text[: thirds + 1]):
        thirds -= 1 if character.isascii() else _ASCII_PER_TOKEN * len(character.encode("utf-8", "replace"))
        if thirds < 0:
            return at
    return len(text)
