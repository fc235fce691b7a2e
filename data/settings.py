"""Settings from the environment, for the app and for the background process."""

import os
import re
from pathlib import Path

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from data.inference.options import EngineOptions
from data.preferences import FILE_NAME, as_settings, read_preferences
from data.scheduling.config import SchedulerConfig
from domain.entities.preferences import Preferences
from domain.errors import InvalidRequest
from domain.reasons import plain_reason

_PREFIX = "UNIUN_"
_NESTED = "__"


class ServerSettings(BaseModel):
    """Where the web app and the API listen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    """Anything else is reachable from other machines, and needs a token."""
    port: int = Field(default=8118, ge=0, le=65535)
    """0: any that is free."""
    names: tuple[str, ...] = ()
    """Further host names under which browsers may ask for it."""


class Settings(BaseSettings):
    """Every field has a variable: `UNIUN_DATA_DIR`, `UNIUN_ENGINE__BACKEND`, `UNIUN_SCHEDULER__FAIR_SLICE_S`, …"""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter=_NESTED, env_ignore_empty=True, extra="forbid", frozen=True
    )

    data_dir: Path = Field(default_factory=lambda: platformdirs.user_data_path("uniun", appauthor=False))
    """Models, and the database unless `database_url` names another."""
    database_url: str | None = None
    """A SQLAlchemy URL, SQLite or PostgreSQL. None: the file uniun.db in the data folder."""
    log_dir: Path = Field(default_factory=lambda: platformdirs.user_log_path("uniun", appauthor=False))
    """If only `data_dir` is named, `log` in it: what went wrong with other data is told of with that."""
    background_interval_s: float = Field(default=60.0, ge=0.05, le=86_400)
    """How often the background process looks for due Ganas."""
    read_notes: bool = True
    """Whether notes are read into the graph by themselves."""
    engine: EngineOptions = EngineOptions()
    scheduler: SchedulerConfig = SchedulerConfig()
    server: ServerSettings = ServerSettings()


def load_settings() -> Settings:
    """From the environment, and below it from what the user chose in the app.

    Raises `InvalidRequest` naming the variable or the file that is wrong, and why.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        variable = variable_of(first["loc"])
        reason = plain_reason(first["msg"])
        if first["type"] in ("model_type", "model_attributes_type"):
            reason = f"it is a group of settings, each with a variable of its own, as {variable}{_NESTED}NAME"
        raise InvalidRequest(
            f"The environment variable {variable} is wrong ({first['input']!r}): {reason}. Correct it or unset it."
        ) from None
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        variable = _PREFIX + (field[1].upper() if field else "…")
        raise InvalidRequest(
            f"The environment variable {variable} is wrong: it is a group of settings, as a JSON object or each with a "
            f"variable of its own, {variable}{_NESTED}NAME. Correct it or unset it."
        ) from None
    told = settings.model_fields_set
    settings = settings.model_copy(
        update={name: _expanded(settings, name) for name in ("data_dir", "log_dir")}
    )
    _check_data_dir(settings.data_dir)
    if "data_dir" in told and "log_dir" not in told:
        settings = settings.model_copy(update={"log_dir": settings.data_dir / "log"})
    return with_preferences(settings, read_preferences(settings.data_dir))


def variable_of(place: tuple[str | int, ...]) -> str:
    """The environment variable of a field."""
    return _PREFIX + _NESTED.join(map(str, place)).upper()


def with_preferences(settings: Settings, preferences: Preferences) -> Settings:
    """What is chosen below what the environment says. Raises `InvalidRequest` if the two contradict each other."""
    chosen = as_settings(preferences)
    told = settings.model_dump(exclude_unset=True)
    try:
        update: dict[str, object] = {
            name: type(group).model_validate(chosen[name] | told.get(name, {}))
            for name, group in (("engine", settings.engine), ("scheduler", settings.scheduler))
            if name in chosen
        }
    except ValidationError as error:
        raise InvalidRequest(
            f"{settings.data_dir / FILE_NAME} does not go with the environment: "
            f"{plain_reason(error.errors(include_url=False)[0]['msg'])}. Change the setting or unset the variable."
        ) from None
    plain = {name: value for name, value in chosen.items() if name not in update and name not in told}
    return settings.model_copy(update=update | plain)


def _expanded(settings: Settings, name: str) -> Path:
    path: Path = getattr(settings, name)
    try:
        return path.expanduser()
    except RuntimeError:
        raise InvalidRequest(
            f"The environment variable {_PREFIX}{name.upper()} is wrong ({str(path)!r}): there is no such home folder. "
            "Correct it or unset it."
        ) from None


def _check_data_dir(path: Path) -> None:
    # Not `Path.exists`, which raises where a folder above must not be read.
    place = next((above for above in (path, *path.parents) if os.path.exists(above)), None)
    if place is not None and not os.path.isdir(place):
        what = "it" if place == path else place
        raise InvalidRequest(
            f"The data folder {path} cannot be used: {what} is no folder. Set {_PREFIX}DATA_DIR to one, or move the file away."
        )
