"""Settings from the environment, for the app and for the background process."""

import re
from pathlib import Path

import platformdirs
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from data.inference.options import EngineOptions
from data.scheduling.config import SchedulerConfig
from domain.errors import InvalidRequest
from domain.reasons import plain_reason

_PREFIX = "UNIUN_"
_NESTED = "__"


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
    background_interval_s: float = Field(default=60.0, ge=0.05, le=86_400)
    """How often the background process looks for due Ganas."""
    engine: EngineOptions = EngineOptions()
    scheduler: SchedulerConfig = SchedulerConfig()


def load_settings() -> Settings:
    """Raises `InvalidRequest` naming the variable that is wrong, and why."""
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        variable = _PREFIX + _NESTED.join(map(str, first["loc"])).upper()
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
    return settings.model_copy(update={name: _expanded(settings, name) for name in ("data_dir", "log_dir")})


def _expanded(settings: Settings, name: str) -> Path:
    path: Path = getattr(settings, name)
    try:
        return path.expanduser()
    except RuntimeError:
        raise InvalidRequest(
            f"The environment variable {_PREFIX}{name.upper()} is wrong ({str(path)!r}): there is no such home folder. "
            "Correct it or unset it."
        ) from None
