"""Markdown, read for what it says of itself."""

from typing import Protocol

from domain.entities.note import ParsedNote


class NoteParser(Protocol):
    """Any text is harmless and parsed in time proportional to its length."""

    def parse(self, text: str) -> ParsedNote:
        """Front matter, title, tags, links. What cannot be understood stays in the text and is told in `flaws`."""
        ...
