"""OpenAI's harmony format, in which gpt-oss writes: messages in channels, of which one is thinking and one the answer.

https://cookbook.openai.com/articles/openai-harmony: `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`
"""

from collections.abc import Mapping

from domain.usecases.thinking import CLOSE, OPEN

ANSWER = "<|channel|>final<|message|>"
"""Begins the answer without thinking."""
_START, _CHANNEL, _MESSAGE, _END = "<|start|>", "<|channel|>", "<|message|>", "<|end|>"
_MAX_HEADER_BYTES = 200


def has_channels(control: Mapping[str, int]) -> bool:
    """Whether a model with these control tokens writes so."""
    return all(token in control for token in (_START, _CHANNEL, _MESSAGE, _END))


class ChannelReader:
    """Makes of the tokens of such an answer the text of any other: thinking between the usual two tags."""

    def __init__(self, control: Mapping[str, int], last_of_prompt: int) -> None:
        self._heads = {control[_START], control[_CHANNEL], control[_END]}
        self._message = control[_MESSAGE]
        self._header: bytes | None = None if last_of_prompt == self._message else b""
        """What was written since a header began; none within a message."""
        self._thinks = False

    def feed(self, token: int, piece: bytes) -> bytes:
        """What the token adds to the text; `piece` is its own."""
        if token in self._heads:
            self._header = b""
            return b""
        if token == self._message:
            header, self._header = self._header or b"", None
            return self._turn(thinks=header.startswith(b"analysis") or b" to=" in header)
        if self._header is None:
            return piece
        self._header = (self._header + piece)[:_MAX_HEADER_BYTES]
        return b""

    def _turn(self, *, thinks: bool) -> bytes:
        """A call of a tool, which nobody has offered, is told as thinking."""
        before, self._thinks = self._thinks, thinks
        return b"" if thinks == before else (OPEN if thinks else CLOSE).encode()
