import contextlib
import inspect
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.entities.gana import GanaDraft
from domain.errors import InvalidRequest
from domain.usecases.trigger_words import EXAMPLES, describe_trigger, read_trigger
from presentation.cli import gana_commands

NOW = datetime(2026, 3, 4, 10, 30)  # noqa: DTZ001 - a Wednesday, on the wall clock


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
        ("every morning", {"cron": "0 8 * * *"}),
        ("every evening", {"cron": "0 18 * * *"}),
        ("each night at 11:30 pm", {"cron": "30 23 * * *"}),
        ("every noon", {"cron": "0 12 * * *"}),
        ("in the morning", {"cron": "0 8 * * *"}),
        ("nightly", {"cron": "0 22 * * *"}),
        ("daily", {"cron": "0 8 * * *"}),
        ("twice a day", {"cron": "0 8,18 * * *"}),
        ("three times a day", {"cron": "0 8,13,18 * * *"}),
        ("every day at 8:30 and 18:30", {"cron": "30 8,18 * * *"}),
        ("at 8 o'clock every day", {"cron": "0 8 * * *"}),
        ("8am every weekday", {"cron": "0 8 * * 1-5"}),
        ("weekdays at 9", {"cron": "0 9 * * 1-5"}),
        ("every working day at noon", {"cron": "0 12 * * 1-5"}),
        ("Monday to Friday at 9 a.m.", {"cron": "0 9 * * 1-5"}),
        ("on weekends", {"cron": "0 8 * * 6,0"}),
        ("every monday and thursday at 18:00", {"cron": "0 18 * * 1,4"}),
        ("mondays and fridays at 7", {"cron": "0 7 * * 1,5"}),
        ("every friday evening", {"cron": "0 18 * * 5"}),
        ("every monday", {"cron": "0 8 * * 1"}),
        ("every month", {"cron": "0 8 1 * *"}),
        ("every other day", {"interval_minutes": 2880}),
        ("every half hour", {"interval_minutes": 30}),
        ("every two hours", {"interval_minutes": 120}),
        ("tomorrow at noon", {"mode": "one_shot", "once_wall": datetime(2026, 3, 5, 12)}),  # noqa: DTZ001
        ("tomorrow morning", {"mode": "one_shot", "once_wall": datetime(2026, 3, 5, 8)}),  # noqa: DTZ001
        ("tonight", {"mode": "one_shot", "once_wall": datetime(2026, 3, 4, 22)}),  # noqa: DTZ001
        ("today at 18:00", {"mode": "one_shot", "once_wall": datetime(2026, 3, 4, 18)}),  # noqa: DTZ001
        ("next wednesday at 9", {"mode": "one_shot", "once_wall": datetime(2026, 3, 11, 9)}),  # noqa: DTZ001
        ("on sunday", {"mode": "one_shot", "once_wall": datetime(2026, 3, 8, 8)}),  # noqa: DTZ001
        ("in 2 hours", {"mode": "one_shot", "once_in_minutes": 120}),
        ("in half an hour", {"mode": "one_shot", "once_in_minutes": 30}),
        ("when a note tagged garten is added", {"reactive": True, "input_tag": "garten"}),
        ('whenever I add a note tagged "garten"', {"reactive": True, "input_tag": "garten"}),
        ("when a note is added with the tag garten", {"reactive": True, "input_tag": "garten"}),
        ("when a note is added to My Kitchen", {"reactive": True, "input_manas": "My Kitchen"}),
        ("when a note is added", {"reactive": True}),
        (
            "every morning and when a note tagged x arrives",
            {"cron": "0 8 * * *", "reactive": True, "input_tag": "x"},
        ),
    ],
)
def test_words(words: str, expected: dict[str, Any]) -> None:
    assert read_trigger(words, NOW).model_dump(exclude_defaults=True) == expected


@pytest.mark.parametrize(
    "words",
    [
        "",
        "whenever",
        "every day at 25:00",
        "every day at 8:99",
        "once at 2026-13-01 9:00",
        "every day at 13 pm",
        "every day at 8:00 and 9:30",
        "every day at teatime",
        "today at 8:00",
        "jeden Tag um 8",
    ],
)
def test_what_is_not_understood_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(InvalidRequest, match="for example"):
        read_trigger(words, NOW)


@pytest.mark.parametrize("words", [words for words in EXAMPLES if "tomorrow" not in words])
def test_what_is_said_can_be_read_again(words: str) -> None:
    trigger = read_trigger(words, NOW)
    draft = GanaDraft.model_validate(
        {
            "name": "g",
            "task": "t",
            **trigger.model_dump(exclude={"once_wall", "once_in_minutes", "input_manas"}),
        }
    )
    said = describe_trigger(draft)
    if not said.startswith("on day"):
        assert read_trigger(said, NOW) == trigger


def test_every_example_that_is_shown_anywhere_is_understood() -> None:
    root = Path(__file__).parents[3]
    readme = (root / "README.md").read_text(encoding="utf-8")
    shown = {*EXAMPLES, *re.findall(r'--trigger "([^"]+)"', readme)}
    (table,) = re.findall(r"triggers in words: (.+?) \|", readme)
    options = inspect.getsource(gana_commands)
    (helped,) = re.findall(r"When it runs, in words: (.+?)\.'", options, re.DOTALL)
    for place in (table, helped):
        shown |= set(re.findall(r'"([^"]+)"', place))
    with pytest.raises(InvalidRequest) as refused:
        read_trigger("jeden Tag um 8", NOW)
    shown |= set(str(refused.value).split("for example: ")[1].rstrip(".").split("; "))
    assert len(shown) > len(EXAMPLES)
    for words in shown:
        trigger = read_trigger(words, NOW)
        assert trigger.input_manas is None, "it may not be there"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert read_trigger(text, NOW).mode in ("recurring", "one_shot")
