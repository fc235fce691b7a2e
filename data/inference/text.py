"""From token bytes to text that may be shown: whole characters only, nothing of a stop string."""

import codecs
from collections.abc import Sequence


class TextDecoder:
    """Incremental UTF-8: bytes of an unfinished character wait for the rest, invalid ones become U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, piece: bytes) -> str:
        return self._decoder.decode(piece)


class StopMatcher:
    """Cuts the text at the first stop string and holds back what may turn out to be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def feed(self, text: str) -> tuple[str, bool]:
        """The text that is now safe to show, and whether a stop string was met (the rest is dropped)."""
        if not self._stops:
            return text, False
        text = self._held + text
        found = [at for at in (text.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self._held = ""
            return text[: min(found)], True
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False

    def flush(self) -> str:
        """What was held back; called once, when no more text can come."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a proper beginning of `stop`."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
