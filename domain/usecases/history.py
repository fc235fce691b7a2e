"""Which part of a conversation is sent to the model."""

from collections.abc import Sequence
from itertools import pairwise

from domain.entities.llm import Message
from domain.usecases.text_budget import text_tokens

_TEMPLATE_TOKENS = 8
"""Role marks that a chat template puts around a message, rounded up."""


def estimate_tokens(message: Message) -> int:
    """Tokens of a message, guessed without a tokenizer, on the high side."""
    return text_tokens(message.content) + _TEMPLATE_TOKENS


def trim_history(messages: Sequence[Message], budget_tokens: int) -> tuple[Message, ...]:
    """The system messages at the front and the newest turns that fit in the budget, whole turns, oldest dropped first.

    The last turn always stays: if it alone is too long, the engine says so with both numbers. When the budget is
    passed, turns are dropped down to half of it, so that the cut stays where it is for many turns and the KV cache of
    the prefix can be used again; dropping one turn at each turn would make every turn prefill the whole history.
    """
    first = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    head, rest = tuple(messages[:first]), messages[first:]
    budget = budget_tokens - sum(map(estimate_tokens, head))
    kept: list[tuple[Message, ...]] = []
    used = 0
    for turn in _turns(rest):
        kept.append(turn)
        used += _cost(turn)
        if used > budget:
            while len(kept) > 1 and used > budget // 2:
                used -= _cost(kept.pop(0))
    return head + tuple(message for turn in kept for message in turn)


def _turns(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """A turn is what the user said and everything up to the next time."""
    starts = [at for at, message in enumerate(messages) if at == 0 or message.role == "user"]
    return [tuple(messages[a:b]) for a, b in pairwise([*starts, len(messages)])]


def _cost(turn: tuple[Message, ...]) -> int:
    return sum(map(estimate_tokens, turn))
