"""Telling an answer from the thinking that some models write before it.

An engine's text has it between the two tags. Where a chat template opens the first one itself, so that the model only
writes the second, the engine puts the first one before the answer.
"""

OPEN, CLOSE = "<think>", "</think>"


class ThinkingFold:
    """Takes an answer piece by piece; a tag may be split between any two of them.

    A server elsewhere may leave the opening tag out: at a closing tag without one everything before it was thinking,
    and `answer` is right again from there on.
    """

    def __init__(self) -> None:
        self.answer = ""
        self.thinking = ""
        self._inside = False
        self._opened = False
        self._held = ""
        """The end of the text so far, while it may be the beginning of a tag."""
        self._blanks = ""
        """The end of the thinking so far; blanks around it are left out."""
        self._after_thought = False
        """No answer yet: line feeds between the two are left out."""

    def feed(self, text: str) -> tuple[str, str]:
        """New (answer, thinking) text; both may be empty. The sums do not depend on where the text was cut."""
        rest = self._held + text
        self._held = ""
        said: list[str] = []
        thought: list[str] = []
        while rest:
            tags = (CLOSE,) if self._inside else (OPEN,) if self._opened else (OPEN, CLOSE)
            at, tag = min(((at, tag) for tag in tags if (at := rest.find(tag)) >= 0), default=(-1, ""))
            if at < 0:
                keep = beginning_of_tag(rest, tags)
                rest, self._held = rest[: len(rest) - keep], rest[len(rest) - keep :]
                self._add(rest, said, thought)
                break
            self._add(rest[:at], said, thought)
            if tag == CLOSE and not self._inside:
                self.thinking, self.answer = self.answer.strip(), ""
                self._opened = True
            self._inside = tag == OPEN
            self._opened = self._opened or self._inside
            self._blanks = ""
            self._after_thought = tag == CLOSE and not self.answer
            rest = rest[at + len(tag) :]
        return "".join(said), "".join(thought)

    def end(self) -> tuple[str, str]:
        """Nothing more comes: what was held back is text."""
        said: list[str] = []
        thought: list[str] = []
        self._add(self._held, said, thought)
        self._held = ""
        return "".join(said), "".join(thought)

    def _add(self, text: str, said: list[str], thought: list[str]) -> None:
        if self._inside:
            whole = (self._blanks + text) if self.thinking else text.lstrip()
            text = whole.rstrip()
            self._blanks = whole[len(text) :]
            self.thinking += text
            thought.append(text)
            return
        if self._after_thought:
            text = text.lstrip("\n")
            self._after_thought = not text
        self.answer += text
        said.append(text)


def answer_only(text: str) -> str:
    """A whole answer without its thinking."""
    fold = ThinkingFold()
    fold.feed(text)
    fold.end()
    return fold.answer.strip()


def beginning_of_tag(text: str, tags: tuple[str, ...]) -> int:
    """Length of the longest end of the text with which one of the tags, none of which is in it, begins."""
    longest = max(map(len, tags)) - 1
    return next(
        (n for n in range(min(longest, len(text)), 0, -1) if any(tag.startswith(text[-n:]) for tag in tags)),
        0,
    )
