import contextlib
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.entities.gana import GanaDraft
from domain.errors import InvalidRequest
from domain.usecases.trigger_words import EXAMPLES, describe_trigger, read_trigger


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("every day at 8:00", {"cron": "0 8 * * *"}),
        ("Every  day at 8", {"cron": "0 8 * * *"}),
        ("daily at 6.30 pm", {"cron": "30 18 * * *"}),
        ("every day at 12 am.", {"cron": "0 0 * * *"}),
        ("every weekday at 7:30", {"cron": "30 7 * * 1-5"}),
        ("every weekend at 10:00", {"cron": "0 10 * * 6,0"}),
        ("every Monday at 9:05", {"cron": "5 9 * * 1"}),
        ("every mon, wed and fridays at 9:00", {"cron": "0 9 * * 1,3,5"}),
        ("on the 1st of every month at 9:00", {"cron": "0 9 1 * *"}),
        ("monthly on the 15th at 9:00", {"cron": "0 9 15 * *"}),
        ("every 30 minutes", {"interval_minutes": 30}),
        ("every hour", {"interval_minutes": 60}),
        ("hourly", {"interval_minutes": 60}),
        ("every 2 days", {"interval_minutes": 2880}),
        ("cron 0 8 * * 1-5", {"cron": "0 8 * * 1-5"}),
        ("*/15 * * * *", {"cron": "*/15 * * * *"}),
        ("once at 2026-12-24 18:00", {"mode": "one_shot", "once_wall": datetime(2026, 12, 24, 18)}),  # noqa: DTZ001
        ("on new notes tagged #inbox", {"reactive": True, "input_tag": "inbox"}),
        ("when a new note with #inbox comes", {"reactive": True, "input_tag": "inbox"}),
        ("when new notes with the tag inbox arrive", {"reactive": True, "input_tag": "inbox"}),
        ("when a new note in My Kitchen comes", {"reactive": True, "input_manas": "My Kitchen"}),
        ("on new notes in My Kitchen", {"reactive": True, "input_manas": "My Kitchen"}),
        ("once on a new note tagged x", {"mode": "one_shot", "reactive": True, "input_tag": "x"}),
        (
            "every day at 8:00 and on new notes tagged x",
            {"cron": "0 8 * * *", "reactive": True, "input_tag": "x"},
        ),
        ("by hand", {}),
    ],
)
def test_words(words: str, expected: dict[str, Any]) -> None:
    assert read_trigger(words).model_dump(exclude_defaults=True) == expected


@pytest.mark.parametrize(
    "words",
    [
        "",
        "whenever",
        "every day at 25:00",
        "every day at 8:99",
        "once at 2026-13-01 9:00",
        "every day at 13 pm",
    ],
)
def test_what_is_not_understood_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(InvalidRequest, match="for example"):
        read_trigger(words)


@pytest.mark.parametrize(
    "words", [words for words in EXAMPLES if "once at" not in words and "Kitchen" not in words]
)
def test_what_is_said_can_be_read_again(words: str) -> None:
    trigger = read_trigger(words)
    draft = GanaDraft.model_validate(
        {"name": "g", "task": "t", **trigger.model_dump(exclude={"once_wall", "input_manas"})}
    )
    said = describe_trigger(draft)
    if not said.startswith("on day"):
        assert read_trigger(said) == trigger


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert read_trigger(text).mode in ("recurring", "one_shot")
