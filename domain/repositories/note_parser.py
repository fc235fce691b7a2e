"""Markdown, read for what it says of itself."""

from collections.abc import Mapping
from typing import Protocol

from domain.entities.note import ParsedNote


class NoteParser(Protocol):
    """Any text is harmless and parsed in time proportional to its length."""

    def parse(self, text: str) -> ParsedNote:
        """Front matter, title, tags, links. What cannot be understood stays in the text and is told in `flaws`."""
        ...

    def render(self, front: Mapping[str, object], text: str) -> str:
        """The text under a front matter that `parse` reads back; empty fields are left out."""
        ...
