"""Telling an answer from the thinking that some models write before it."""

OPEN, CLOSE = "<think>", "</think>"


class ThinkingFold:
    """Takes an answer piece by piece; a tag may be split between any two of them.

    Some chat templates open the tag themselves, so that the answer begins inside: at a closing tag without an opening
    one everything before it was thinking, and `answer` is right again from there on.
    """

    def __init__(self) -> None:
        self.answer = ""
        self.thinking = ""
        self._inside = False
        self._opened = False
        self._held = ""
        """The end of the text so far, while it may be the beginning of a tag."""

    def feed(self, text: str) -> tuple[str, str]:
        """New (answer, thinking) text; both may be empty."""
        rest = self._held + text
        self._held = ""
        said: list[str] = []
        thought: list[str] = []
        while rest:
            tags = (CLOSE,) if self._inside else (OPEN,) if self._opened else (OPEN, CLOSE)
            at, tag = min(((at, tag) for tag in tags if (at := rest.find(tag)) >= 0), default=(-1, ""))
            if at < 0:
                keep = _beginning_of_tag(rest, tags)
                rest, self._held = rest[: len(rest) - keep], rest[len(rest) - keep :]
                self._add(rest, said, thought)
                break
            self._add(rest[:at], said, thought)
            if tag == CLOSE and not self._inside:
                self.thinking, self.answer = self.answer, ""
                self._opened = True
            self._inside = tag == OPEN
            self._opened = self._opened or self._inside
            rest = rest[at + len(tag) :]
            if tag == CLOSE:
                rest = rest.lstrip("\n") if not self.answer else rest
        return "".join(said), "".join(thought)

    def end(self) -> tuple[str, str]:
        """Nothing more comes: what was held back is text."""
        said: list[str] = []
        thought: list[str] = []
        self._add(self._held, said, thought)
        self._held = ""
        return "".join(said), "".join(thought)

    def _add(self, text: str, said: list[str], thought: list[str]) -> None:
        if not text:
            return
        if self._inside:
            self.thinking += text
            thought.append(text)
        else:
            self.answer += text
            said.append(text)


def answer_only(text: str) -> str:
    """A whole answer without its thinking."""
    fold = ThinkingFold()
    fold.feed(text)
    fold.end()
    return fold.answer.strip()


def _beginning_of_tag(text: str, tags: tuple[str, ...]) -> int:
    """Length of the longest end of the text with which one of the tags begins."""
    longest = max(map(len, tags)) - 1
    return next(
        (n for n in range(min(longest, len(text)), 0, -1) if any(tag.startswith(text[-n:]) for tag in tags)),
        0,
    )
