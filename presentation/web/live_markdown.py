"""Markdown on the screen that can grow without being drawn anew."""

from collections.abc import Sequence

from nicegui.element import Element


class LiveMarkdown(Element, component="live_markdown.js"):
    """Blocks of HTML, sanitised once more in the browser."""

    def __init__(self, blocks: Sequence[str] = ()) -> None:
        super().__init__()
        self._props["blocks"] = list(blocks)
        self.classes("u-prose")

    def patch(self, first: int, blocks: Sequence[str]) -> None:
        """Replaces everything from block `first` on. The rest of the page is not looked at."""
        # Whoever connects later gets them as well.
        self._props["blocks"] = [*self._props["blocks"][:first], *blocks]
        self.run_method("patch", first, list(blocks))
