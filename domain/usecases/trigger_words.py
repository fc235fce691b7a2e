"""When a Gana runs, in plain words: reading them, and saying them."""

import re
from datetime import datetime

from domain.entities.gana import GanaDraft
from domain.errors import InvalidRequest
from domain.usecases.trigger_forms import DAYS, FORMS, UNITS, Trigger

EXAMPLES = (
    "every morning",
    "every weekday at 7:30",
    "every monday and thursday at 18:00",
    "every 30 minutes",
    "tomorrow at noon",
    "when a note tagged inbox is added",
    "by hand",
)
"""What faces offer, and what an error names."""
_FORMS = tuple((re.compile(pattern, re.IGNORECASE), read) for pattern, read in FORMS)
_BOTH = re.compile(
    r"(.+?)\s+and\s+((?:once\s+)?(?:on|when(?:ever)?)\s+(?:\S+\s+){0,4}?notes?\b.*)", re.IGNORECASE
)
_TIME_FIRST = re.compile(
    r"(?:at\s+)?(\d[\d:.]*\s*(?:am|pm|o'?clock)?|noon|midnight)\s+((?:every|each|on|in the)\s.+|daily|today|tomorrow)",
    re.IGNORECASE,
)


def read_trigger(text: str, now: datetime) -> Trigger:
    """`now` is on the machine's own clock, without a zone. Raises `InvalidRequest` with examples for what is none of the
    known ways to say it."""
    words = " ".join(text.split()).rstrip(".!")
    both = _BOTH.fullmatch(words)
    if both is not None:
        timed, reacting = read_trigger(both[1], now), read_trigger(both[2], now)
        if timed.mode == reacting.mode == "recurring" and not timed.reactive:
            return timed.model_copy(
                update=reacting.model_dump(include={"reactive", "input_tag", "input_manas"})
            )
    turned = _TIME_FIRST.fullmatch(words)
    for said in (words, f"{turned[2]} at {turned[1]}") if turned is not None else (words,):
        for pattern, read in _FORMS:
            if match := pattern.fullmatch(said):
                return read(match, now)
    raise InvalidRequest(
        f"{words!r} says no time that is understood. Write it in English, for example: {'; '.join(EXAMPLES)}."
    )


def describe_trigger(draft: GanaDraft, local_once: str = "") -> str:
    """The same in words; `local_once` is the time of a one-shot on the machine's own clock."""
    parts: list[str] = []
    if draft.interval_minutes is not None:
        parts.append(f"every {_interval(draft.interval_minutes)}")
    if draft.cron is not None:
        parts.append(_cron_in_words(draft.cron))
    if draft.once_at is not None and draft.mode == "one_shot":
        parts.append(f"once at {local_once or draft.once_at.isoformat(' ', 'minutes')}")
    if draft.reactive:
        once = "once " if draft.mode == "one_shot" else ""
        where = f"tagged {draft.input_tag}" if draft.input_tag is not None else "in its Manas"
        parts.append(f"{once}on new notes {where}")
    return " and ".join(parts) or "by hand"


def _interval(minutes: int) -> str:
    for unit in ("week", "day", "hour"):
        if minutes % UNITS[unit] == 0:
            count = minutes // UNITS[unit]
            return unit if count == 1 else f"{count} {unit}s"
    return f"{minutes} minutes"


def _cron_in_words(cron: str) -> str:
    fields = cron.split()
    if (
        len(fields) == 5
        and fields[0].isdecimal()
        and re.fullmatch(r"\d+(,\d+)*", fields[1])
        and fields[3] == "*"
    ):
        minute, hours, day, _, weekday = fields
        at = f"at {' and '.join(f'{int(hour)}:{int(minute):02}' for hour in hours.split(','))}"
        if day == "*" and weekday in ("*", "1-5"):
            return f"every {'day' if weekday == '*' else 'weekday'} {at}"
        numbers = weekday.split(",")
        if day == "*" and all(number in "01234567" and len(number) == 1 for number in numbers):
            return f"every {' and '.join(DAYS[int(number) % 7] for number in numbers)} {at}"
        if day.isdecimal() and weekday == "*":
            return f"on day {int(day)} of every month {at}"
    return f"cron {cron}"
