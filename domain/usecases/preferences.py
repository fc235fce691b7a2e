"""Looking at what can be tuned, and tuning it."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from domain.entities.preferences import Preferences, PreferencesView
from domain.errors import InvalidField
from domain.reasons import plain_reason
from domain.repositories.preferences import PreferenceStore


class ShowPreferencesUseCase:
    """What is chosen, what holds now, and what the environment fixes."""

    def __init__(self, store: PreferenceStore) -> None:
        self._store = store

    def __call__(self) -> PreferencesView:
        """Raises `InvalidRequest` if the file is damaged."""
        return self._store.look()


class ChangePreferencesUseCase:
    """Writes choices down, and tunes with them what runs."""

    def __init__(self, store: PreferenceStore) -> None:
        self._store = store

    def __call__(self, fields: Mapping[str, Any]) -> PreferencesView:
        """Fields that are not given stay; none brings the default back. Raises `InvalidField`."""
        view = self._store.look()
        try:
            changed = Preferences.model_validate(view.chosen.model_dump() | dict(fields))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InvalidField(
                str(first["loc"][0]), f"This was not kept: {plain_reason(first['msg'])}."
            ) from None
        # What is in the file already may be from a larger machine, and must not keep other fields from being changed.
        if "threads" in fields and (changed.threads or 1) > view.cores:
            raise InvalidField(
                "threads", f"This was not kept: this machine has {view.cores} processor cores."
            )
        self._store.write(changed)
        return self._store.look()
