"""A list whose rows stay as long as what they say does."""

from collections.abc import Callable, Hashable, Iterable

from nicegui.element import Element

Row = tuple[Hashable, Callable[[], Element]]
"""What it says, and how it is drawn."""


class Rows:
    """Draws only what has changed: the pointer may be on a row, or a key about to be pressed. `box` holds nothing else."""

    def __init__(self, box: Element) -> None:
        self._box = box
        self._drawn: dict[Hashable, Element] = {}

    def show(self, rows: Iterable[Row]) -> None:
        """These, in this order; no two of them say the same."""
        wanted = dict(rows)
        for key in [key for key in self._drawn if key not in wanted]:
            self._drawn.pop(key).delete()
        for place, (key, draw) in enumerate(wanted.items()):
            if key not in self._drawn:
                with self._box:
                    self._drawn[key] = draw()
            if self._box.default_slot.children[place] is not self._drawn[key]:
                self._drawn[key].move(self._box, place)
