"""Who works on new notes is told at once instead of looking again and again."""

from collections.abc import Sequence
from typing import Protocol


class NoteChanges(Protocol):
    """Within this process; what other processes write is found by looking now and then."""

    def announce(self, note_ids: Sequence[str]) -> None:
        """These notes were saved. Returns at once."""
        ...
