"""Markdown, read for what it says of itself."""

from collections.abc import Mapping
from typing import Protocol

from domain.entities.note import ParsedNote


class NoteParser(Protocol):
    """Any text is harmless and parsed in time proportional to its length."""

    def parse(self, text: str, *, front_matter: bool = True) -> ParsedNote:
        """Front matter, title, tags, links. What cannot be understood stays in the text and is told in `flaws`.

        Without `front_matter` the whole text is body: a stored note may begin with a rule that looks like one.
        """
        ...

    def render(self, front: Mapping[str, object], text: str) -> str:
        """The text under a front matter that `parse` reads back; empty fields are left out."""
        ...
