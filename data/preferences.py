"""The file with the user's choices, and where each of them goes in the settings."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from data.models.files import write_atomically
from domain.entities.preferences import Preferences
from domain.errors import InvalidRequest, UniunError
from domain.reasons import plain_reason

FILE_NAME = "preferences.json"
PLACES: dict[str, tuple[str, ...]] = {
    "context_tokens": ("engine", "context_tokens"),
    "kv_budget_bytes": ("engine", "kv_budget_bytes"),
    "threads": ("engine", "threads"),
    "read_notes": ("read_notes",),
    "extract_share": ("scheduler", "extract_share"),
    "linger_s": ("scheduler", "linger_surface_s"),
    "fair_slice_s": ("scheduler", "fair_slice_s"),
    "background_interval_s": ("background_interval_s",),
}
_RESUME = 0.95
"""Of the extract share: below this part of it extraction gets its normal rank back."""
_MAX_BYTES = 100_000


def read_preferences(data_dir: Path) -> Preferences:
    """Nothing chosen if there is no file. Raises `InvalidRequest` naming the file if it cannot be understood."""
    path = data_dir / FILE_NAME
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return Preferences()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}. Mend it or delete it.") from None
    try:
        return Preferences.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        reason = f"{place}: {plain_reason(first['msg'])}" if place else plain_reason(first["msg"])
    except (ValueError, RecursionError):
        reason = "it is no JSON"
    raise InvalidRequest(f"{path} cannot be used: {reason}. Correct it or delete it.")


def write_preferences(data_dir: Path, preferences: Preferences) -> None:
    """Raises `UniunError` if the disk refuses."""
    path = data_dir / FILE_NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        write_atomically(path, preferences.model_dump_json(indent=2, exclude_none=True))
    except OSError as error:
        raise UniunError(f"{path} cannot be written: {error.strerror}. Free some space or mend it.") from None


def as_settings(preferences: Preferences) -> dict[str, Any]:
    """Nested as the settings are; only what was chosen."""
    nested: dict[str, Any] = {}
    for name, value in preferences.model_dump(exclude_none=True).items():
        *groups, field = PLACES[name]
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[field] = value
    if preferences.extract_share is not None:
        nested["scheduler"]["extract_resume_share"] = preferences.extract_share * _RESUME
    return nested
