"""Noticing that a model goes round in circles, as small ones do: it would go on until it may write no more."""

TIMES = 8
_LEAST_CHARACTERS = 1_000
"""Tables, lists and refrains repeat themselves, and some people ask for a sentence twenty times."""
_PROBE = 40
_LOOKED_AT = 4_000


def goes_in_circles(text: str) -> bool:
    """Whether it ends with the same words at least `TIMES` in a row. What is in a block of code may repeat itself."""
    tail = text[-_LOOKED_AT:]
    length = _period(tail)
    if not length:
        return False
    times = max(TIMES, -(-_LEAST_CHARACTERS // length))
    passage = tail[-length:]
    return tail.endswith(passage * times) and any(map(str.isalpha, passage)) and text.count("```") % 2 == 0


def _period(tail: str) -> int:
    """How many characters ago the end of the text stood there before; 0 if it did not."""
    before = tail.rfind(tail[-_PROBE:], 0, -1)
    return len(tail) - _PROBE - before if before >= 0 else 0
