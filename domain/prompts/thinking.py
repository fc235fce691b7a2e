"""The part of an answer that a model thinks before it answers."""

import re

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def without_thinking(answer: str) -> str:
    """The answer alone. A part that was begun and not ended is all thinking; one whose beginning the template wrote too."""
    head, closing, rest = answer.partition("</think>")
    if closing and "<think>" not in head:
        answer = rest
    return _THINKING.sub("", answer).strip()
