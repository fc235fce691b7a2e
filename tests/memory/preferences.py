"""Settings that are kept in memory."""

from pathlib import Path

from domain.entities.preferences import Preferences, PreferencesView
from domain.errors import InvalidRequest
from domain.usecases.preferences import ChangePreferencesUseCase, ShowPreferencesUseCase
from presentation.controllers.settings import SettingsController

DEFAULTS = Preferences(
    context_tokens=8_192,
    kv_budget_bytes=640 << 20,
    threads=2,
    read_notes=True,
    extract_share=0.6,
    linger_s=300,
    fair_slice_s=30,
    background_interval_s=60,
)


class MemoryPreferences:
    """Implements `PreferenceStore`."""

    def __init__(self) -> None:
        self.chosen = Preferences()

    def look(self) -> PreferencesView:
        return PreferencesView(
            chosen=self.chosen,
            in_force=DEFAULTS,
            defaults=DEFAULTS,
            fixed={"threads": "UNIUN_ENGINE__THREADS"},
            cores=4,
            data_dir=Path("/data"),
            log_dir=Path("/logs"),
        )

    def write(self, preferences: Preferences) -> None:
        self.chosen = preferences


class NoDesktop:
    """Implements `FolderOpener`."""

    async def open_data_folder(self) -> None:
        raise InvalidRequest("There is no desktop here.")


def fake_settings(store: MemoryPreferences | None = None) -> SettingsController:
    store = store or MemoryPreferences()
    return SettingsController(ShowPreferencesUseCase(store), ChangePreferencesUseCase(store), NoDesktop())
