import asyncio

import pytest

from domain.errors import InvalidField, InvalidRequest
from tests.memory.preferences import MemoryPreferences, fake_settings


def test_choices_are_kept_one_by_one_and_can_be_taken_back() -> None:
    settings = fake_settings()
    settings.change({"extract_share": 0.4})
    assert settings.change({"threads": 4}).chosen.extract_share == 0.4
    assert settings.change({"threads": None}).chosen.model_dump(exclude_none=True) == {"extract_share": 0.4}


@pytest.mark.parametrize(
    ("field", "value"), [("extract_share", 1.5), ("threads", "many"), ("context_tokens", 10), ("nonsense", 1)]
)
def test_a_wrong_choice_is_refused_at_its_field_and_changes_nothing(field: str, value: object) -> None:
    store = MemoryPreferences()
    with pytest.raises(InvalidField) as refused:
        fake_settings(store).change({field: value})
    assert refused.value.field == field
    assert store.chosen.model_dump(exclude_none=True) == {}


def test_without_a_desktop_no_folder_opens() -> None:
    with pytest.raises(InvalidRequest, match="no desktop"):
        asyncio.run(fake_settings().open_data_folder())


def test_more_threads_than_cores_are_refused() -> None:
    store = MemoryPreferences()
    settings = fake_settings(store)
    with pytest.raises(InvalidField, match="this machine has 4 processor cores"):
        settings.change({"threads": 5})
    assert settings.change({"threads": 4}).chosen.threads == 4
    # Written on a larger machine: it stays, and holds nothing else up.
    store.chosen = store.chosen.model_copy(update={"threads": 64})
    assert settings.change({"linger_s": 60}).chosen.linger_s == 60
