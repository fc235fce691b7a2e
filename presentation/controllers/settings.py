"""What a user may tune, for every face."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.entities.preferences import PreferencesView
from domain.repositories.preferences import FolderOpener
from domain.usecases.preferences import ChangePreferencesUseCase, ShowPreferencesUseCase


@dataclass(frozen=True)
class SettingsController:
    """Choices are kept in the data folder. What the running program can take over, it does at once."""

    show: ShowPreferencesUseCase
    change_preferences: ChangePreferencesUseCase
    folders: FolderOpener

    def view(self) -> PreferencesView:
        """Raises `InvalidRequest` if the file is damaged."""
        return self.show()

    def change(self, fields: Mapping[str, Any]) -> PreferencesView:
        """None brings a default back. Raises `InvalidField`."""
        return self.change_preferences(fields)

    async def open_data_folder(self) -> None:
        """In the desktop's file manager, on the machine that UNIUN runs on. Raises `InvalidRequest`."""
        await self.folders.open_data_folder()
