"""A bell in this process: rung by whoever saves notes, heard by whoever works on them."""

from collections.abc import Callable, Sequence

Listener = Callable[[Sequence[str]], None]


class LocalNoteChanges:
    """Implements `NoteChanges`. Listeners must return at once."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def announce(self, note_ids: Sequence[str]) -> None:
        for listener in tuple(self._listeners):
            listener(note_ids)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
