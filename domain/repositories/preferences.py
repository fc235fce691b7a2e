"""Where the user's choices are kept."""

from typing import Protocol

from domain.entities.preferences import Preferences, PreferencesView


class PreferenceStore(Protocol):
    """One file in the data folder."""

    def look(self) -> PreferencesView:
        """Raises `InvalidRequest` naming the file if it cannot be understood."""
        ...

    def write(self, preferences: Preferences) -> None:
        """Whole or not at all; what can be tuned while the program runs is in force after it.

        Raises `InvalidRequest` if the environment contradicts, `UniunError` if the disk refuses.
        """
        ...


class FolderOpener(Protocol):
    """The desktop's file manager."""

    async def open_data_folder(self) -> None:
        """Raises `InvalidRequest` where there is none."""
        ...
