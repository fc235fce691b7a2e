"""The user's choices beside what this process runs with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from data.inference.options import EngineOptions
from data.preferences import PLACES, read_preferences, write_preferences
from data.scheduling.config import LIVE, SchedulerConfig
from data.settings import Settings, variable_of, with_preferences
from domain.entities.preferences import Preferences, PreferencesView
from domain.errors import UniunError


class FilePreferences:
    """Implements `PreferenceStore` in the data folder of `settings`, which this process was started with.

    `configure` is the running scheduler's, `use_engine` loads models anew. The background process looks into the file by itself.
    """

    def __init__(
        self,
        settings: Settings,
        configure: Callable[[SchedulerConfig], None],
        use_engine: Callable[[EngineOptions], None],
        reading_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._configure = configure
        self._use_engine = use_engine
        self._reading_changed = reading_changed

    def look(self) -> PreferencesView:
        environment = Settings()
        plain = Settings.model_construct()
        return PreferencesView(
            chosen=read_preferences(self._settings.data_dir),
            in_force=_values(self._settings),
            defaults=_values(plain),
            fixed={name: variable_of(place) for name, place in PLACES.items() if _is_set(environment, place)},
            cores=psutil.cpu_count() or 1,
            data_dir=self._settings.data_dir,
            log_dir=self._settings.log_dir,
        )

    def write(self, preferences: Preferences) -> None:
        wanted = with_preferences(Settings(), preferences)
        write_preferences(self._settings.data_dir, preferences)
        tuned = {name: getattr(wanted.scheduler, name) for name in LIVE}
        before = self._settings.engine
        self._settings = self._settings.model_copy(
            update={
                "engine": wanted.engine,
                "scheduler": self._settings.scheduler.model_copy(update=tuned),
                "background_interval_s": wanted.background_interval_s,
                "read_notes": wanted.read_notes,
            }
        )
        self._configure(self._settings.scheduler)
        if wanted.engine != before:
            self._use_engine(wanted.engine)
        self._reading_changed()


class ReadingWanted:
    """Whether notes shall be read by themselves: what the environment says, else what the file says now, whichever
    process wrote it."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        environment = Settings()
        self._told = environment.read_notes if _is_set(environment, PLACES["read_notes"]) else None

    def __call__(self) -> bool:
        if self._told is not None:
            return self._told
        try:
            return read_preferences(self._data_dir).read_notes is not False
        except UniunError:
            return True  # the settings page says what is wrong with the file


def _values(settings: Settings) -> Preferences:
    """What holds, with the program's own choice where none was made; bounds are those of the settings."""
    found: dict[str, Any] = {name: _value(settings, place) for name, place in PLACES.items()}
    found["context_tokens"] = settings.engine.context_limit
    found["threads"] = found["threads"] or psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    return Preferences.model_construct(**found)


def _value(settings: Settings, place: tuple[str, ...]) -> object:
    value: object = settings
    for name in place:
        value = getattr(value, name)
    return value


def _is_set(settings: Settings, place: tuple[str, ...]) -> bool:
    *groups, field = place
    holder = settings
    for group in groups:
        if group not in holder.model_fields_set:
            return False
        holder = getattr(holder, group)
    return field in holder.model_fields_set
