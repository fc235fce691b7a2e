"""When a Gana runs, in plain words: reading them, and saying them."""

import re
from datetime import datetime

from domain.entities.entity import Entity
from domain.entities.gana import GanaDraft, TriggerMode
from domain.errors import InvalidRequest

EXAMPLES = (
    "every day at 8:00",
    "every weekday at 7:30",
    "every monday and friday at 18:00",
    "every 30 minutes",
    "on the 1st of every month at 9:00",
    "on new notes tagged inbox",
    "on new notes in Kitchen",
    "once at 2026-12-24 18:00",
    "once on new notes tagged inbox",
    "cron 0 8 * * 1-5",
    "by hand",
)
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_UNITS = {"minute": 1, "hour": 60, "day": 1_440, "week": 10_080}
_TIME = r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s*(?P<half>am|pm)?"
_AT = rf"(?:\s+at\s+{_TIME})"
_DAY_NAMES = "|".join(f"{day}s?|{day[:3]}" for day in _DAYS)
_EVERY = re.compile(
    rf"(?:every|each)\s+(?P<days>(?:{_DAY_NAMES})(?:(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)(?:{_DAY_NAMES}))*"
    rf"|day|weekday|weekend){_AT}",
    re.IGNORECASE,
)
_DAILY = re.compile(rf"daily{_AT}", re.IGNORECASE)
_MONTHLY = re.compile(
    rf"(?:on\s+the\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+of\s+(?:every|each)\s+month"
    rf"|(?:monthly|every\s+month)\s+on\s+the\s+(?P<other>\d{{1,2}})(?:st|nd|rd|th)?){_AT}",
    re.IGNORECASE,
)
_INTERVAL = re.compile(
    r"(?:every|each)\s+(?:(?P<count>\d{1,6})\s+)?(?P<unit>minute|hour|day|week)s?", re.IGNORECASE
)
_NEW_NOTES = re.compile(
    r"(?P<once>once\s+)?(?:on|when)\s+(?:a\s+)?new\s+notes?\s+"
    r"(?:(?:tagged|with(?:\s+the)?\s+tag|with(?=\s+#))\s+#?(?P<tag>\S+?)|in\s+(?P<manas>.+?))(?:\s+(?:comes?|arrives?))?",
    re.IGNORECASE,
)
_ONCE = re.compile(
    rf"once\s+(?:at|on)\s+(?P<date>\d{{4}}-\d{{2}}-\d{{2}})(?:\s+at)?(?:[\sT]+{_TIME})?", re.IGNORECASE
)
_CRON = re.compile(r"(?:cron:?\s+)?(?P<cron>[\d*][^\s]*(?:\s+[^\s]+){4})", re.IGNORECASE)


class Trigger(Entity):
    """What the words said. `once_wall` is on the machine's own clock; `input_manas` is a name or an id."""

    mode: TriggerMode = "recurring"
    reactive: bool = False
    interval_minutes: int | None = None
    cron: str | None = None
    once_wall: datetime | None = None
    input_tag: str | None = None
    input_manas: str | None = None


def read_trigger(text: str) -> Trigger:
    """Raises `InvalidRequest` with examples when it is none of the known ways to say it."""
    words = " ".join(text.split()).rstrip(".")
    both = re.fullmatch(
        r"(.+?)\s+and\s+((?:once\s+)?(?:on|when)\s+(?:a\s+)?new\s+note.+)", words, re.IGNORECASE
    )
    if both is not None:
        timed, reacting = read_trigger(both[1]), read_trigger(both[2])
        if timed.mode == reacting.mode == "recurring" and not timed.reactive:
            return timed.model_copy(
                update=reacting.model_dump(include={"reactive", "input_tag", "input_manas"})
            )
    return _single(words)


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


def _single(words: str) -> Trigger:
    if re.fullmatch(r"by hand|never|manually", words, re.IGNORECASE):
        return Trigger()
    if match := _EVERY.fullmatch(words):
        return Trigger(cron=f"{_clock(match)} * * {_weekdays(match['days'].lower())}")
    if match := _DAILY.fullmatch(words):
        return Trigger(cron=f"{_clock(match)} * * *")
    if match := _MONTHLY.fullmatch(words):
        return Trigger(cron=f"{_clock(match)} {int(match['day'] or match['other'])} * *")
    if match := _INTERVAL.fullmatch(
        {"hourly": "every hour", "weekly": "every week"}.get(words.lower(), words)
    ):
        return Trigger(interval_minutes=int(match["count"] or 1) * _UNITS[match["unit"].lower()])
    if match := _NEW_NOTES.fullmatch(words):
        mode: TriggerMode = "one_shot" if match["once"] else "recurring"
        return Trigger(mode=mode, reactive=True, input_tag=match["tag"], input_manas=match["manas"])
    if match := _ONCE.fullmatch(words):
        return Trigger(mode="one_shot", once_wall=_wall(match))
    if match := _CRON.fullmatch(words):
        return Trigger(cron=match["cron"])
    examples = "; ".join(EXAMPLES[:7])
    raise InvalidRequest(f"{words!r} says no time that is understood. Write for example: {examples}.")


def _time(match: re.Match[str]) -> tuple[int, int]:
    hour, minute = int(match["hour"] or 0), int(match["minute"] or 0)
    if half := (match["half"] or "").lower():
        if not 1 <= hour <= 12:
            raise InvalidRequest(f"There is no hour {hour} {half}. Write for example 8:00 or 8 pm.")
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        raise InvalidRequest(f"There is no time {hour}:{minute:02}. Write for example 8:00.")
    return hour, minute


def _clock(match: re.Match[str]) -> str:
    hour, minute = _time(match)
    return f"{minute} {hour}"


def _wall(match: re.Match[str]) -> datetime:
    hour, minute = _time(match)
    try:
        return datetime.fromisoformat(f"{match['date']}T{hour:02}:{minute:02}")
    except ValueError:
        raise InvalidRequest(f"There is no day {match['date']}. Write for example 2026-12-24.") from None


def _weekdays(days: str) -> str:
    if days in ("day", "weekday", "weekend"):
        return {"day": "*", "weekday": "1-5", "weekend": "6,0"}[days]
    named = re.findall(r"[a-z]+", days.replace(" and ", " "))
    return ",".join(str(next(at for at, day in enumerate(_DAYS) if day[:3] == name[:3])) for name in named)


def _interval(minutes: int) -> str:
    for unit in ("week", "day", "hour"):
        if minutes % _UNITS[unit] == 0:
            count = minutes // _UNITS[unit]
            return unit if count == 1 else f"{count} {unit}s"
    return f"{minutes} minutes"


def _cron_in_words(cron: str) -> str:
    fields = cron.split()
    if len(fields) == 5 and fields[0].isdecimal() and fields[1].isdecimal() and fields[3] == "*":
        minute, hour, day, _, weekday = fields
        at = f"at {int(hour)}:{int(minute):02}"
        if day == "*" and weekday in ("*", "1-5"):
            return f"every {'day' if weekday == '*' else 'weekday'} {at}"
        numbers = weekday.split(",")
        if day == "*" and all(number in "01234567" and len(number) == 1 for number in numbers):
            return f"every {' and '.join(_DAYS[int(number) % 7] for number in numbers)} {at}"
        if day.isdecimal() and weekday == "*":
            return f"on day {int(day)} of every month {at}"
    return f"cron {cron}"
