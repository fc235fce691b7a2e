"""The ways in which one may say when a Gana runs: a table of patterns, and what each of them means."""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta

from domain.entities.entity import Entity
from domain.entities.gana import TriggerMode
from domain.errors import InvalidRequest

DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""As cron numbers them."""
UNITS = {"minute": 1, "hour": 60, "day": 1_440, "week": 10_080}
HOURS = {
    "morning": 8,
    "noon": 12,
    "midday": 12,
    "afternoon": 15,
    "evening": 18,
    "night": 22,
    "midnight": 0,
}
"""What is meant where no time is said."""
_OFTEN = {"once": (8,), "twice": (8, 18), "two times": (8, 18), "three times": (8, 13, 18)}
_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "other": 2,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "ten": 10,
}
_COUNTS |= {"fifteen": 15, "twenty": 20, "thirty": 30}


class Trigger(Entity):
    """What the words said. `once_wall` is on the machine's own clock; `input_manas` is a name or an id."""

    mode: TriggerMode = "recurring"
    reactive: bool = False
    interval_minutes: int | None = None
    cron: str | None = None
    once_wall: datetime | None = None
    once_in_minutes: int | None = None
    input_tag: str | None = None
    input_manas: str | None = None


Read = Callable[[re.Match[str], datetime], Trigger]

_CLOCK = re.compile(
    r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s*(?P<half>am|pm|a\.m\.?|p\.m\.?)?(?:\s*(?:o'?clock|h))?"
    rf"|(?P<name>{'|'.join(HOURS)}))",
    re.IGNORECASE,
)
_AT = r"(?:\s+at\s+(?P<at>.+?))?"
_PART = rf"(?:\s+(?P<part>{'|'.join(HOURS)})s?)?"
_DAY = "|".join(f"{day}s?|{day[:3]}" for day in DAYS)
_WORKDAYS = r"(?:week|work|working\s*)days?|(?:from\s+)?monday\s*(?:to|-|through)\s*friday"
_PLURAL = "|".join(f"{day}s" for day in DAYS)


def _list(of: str) -> str:
    return rf"(?:{of})(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:{of}))*"


_COUNT = rf"(?:(?P<count>\d{{1,6}}|{'|'.join(_COUNTS)})\s+)?"
_WHERE = (
    r"(?:(?:tagged(?:\s+(?:with|as))?|with(?:\s+(?:the|a))?\s+tag|with(?=\s+#))\s+[\"'“]?#?(?P<{0}tag>[^\s\"'”]+)[\"'”]?"
    r"|(?:in|into|to)\s+(?:the\s+manas\s+)?[\"'“]?(?P<{0}manas>.+?)[\"'”]?)"
)
_HAPPENS = r"\s+(?:comes?(?:\s+in)?|arrives?|appears?|(?:is|are|gets?|was)\s+(?:added|created|written|saved|imported|made))"


def _every(match: re.Match[str], now: datetime) -> Trigger:
    days = (match["days"] or match["plural"]).lower()
    return Trigger(cron=f"{_clocks(match['at'], match['part'])} * * {_weekdays(days)}")


def _daily(match: re.Match[str], now: datetime) -> Trigger:
    return Trigger(cron=f"{_clocks(match['at'], match['part'])} * * *")


def _often(match: re.Match[str], now: datetime) -> Trigger:
    hours = _OFTEN[match["often"].lower()]
    return Trigger(cron=f"{_clocks(match['at'], None, hours)} * * *")


def _monthly(match: re.Match[str], now: datetime) -> Trigger:
    day = int(match["day"] or match["other"] or 1)
    return Trigger(cron=f"{_clocks(match['at'], None)} {day} * *")


def _interval(match: re.Match[str], now: datetime) -> Trigger:
    return Trigger(interval_minutes=_count(match["count"]) * UNITS[match["unit"].lower()])


def _new_notes(match: re.Match[str], now: datetime) -> Trigger:
    mode: TriggerMode = "one_shot" if match["once"] else "recurring"
    return Trigger(
        mode=mode,
        reactive=True,
        input_tag=match["tag"] or match["_tag"],
        input_manas=match["manas"] or match["_manas"],
    )


def _date(match: re.Match[str], now: datetime) -> Trigger:
    at = _clock(match["at"]) if match["at"] else time()
    try:
        return Trigger(mode="one_shot", once_wall=datetime.fromisoformat(f"{match['date']}T{at:%H:%M}"))
    except ValueError:
        raise InvalidRequest(f"There is no day {match['date']}. Write for example 2026-12-24.") from None


def _soon(match: re.Match[str], now: datetime) -> Trigger:
    day, part = match["day"].lower(), match["part"]
    if day in ("today", "tonight", "tomorrow"):
        later = int(day == "tomorrow")
        part = part or ("night" if day == "tonight" else None)
    else:
        name = day.split()[-1]
        at = next(at for at, each in enumerate(DAYS) if each[:3] == name[:3])
        later = (at - now.isoweekday()) % 7 or 7
    clock = _clock(match["at"]) if match["at"] else time(HOURS[(part or "morning").lower()])
    moment = datetime.combine(now.date() + timedelta(days=later), clock)
    if moment <= now:
        raise InvalidRequest(f"{clock.hour}:{clock:%M} has passed today. Write for example tomorrow at 8:00.")
    return Trigger(mode="one_shot", once_wall=moment)


def _in(match: re.Match[str], now: datetime) -> Trigger:
    if match["half"]:
        return Trigger(mode="one_shot", once_in_minutes=30)
    minutes = _count(match["count"]) * UNITS[match["unit"].lower()]
    if not 1 <= minutes <= 527_040:
        raise InvalidRequest(
            "A Gana can wait for a minute at least, and for a year. Write for example in 2 hours."
        )
    return Trigger(mode="one_shot", once_in_minutes=minutes)


FORMS: tuple[tuple[str, Read], ...] = (
    (r"by hand|never|manually", lambda match, now: Trigger()),
    (r"hourly", lambda match, now: Trigger(interval_minutes=UNITS["hour"])),
    (r"weekly", lambda match, now: Trigger(interval_minutes=UNITS["week"])),
    (r"every\s+half(?:\s+an)?\s+hour", lambda match, now: Trigger(interval_minutes=30)),
    (rf"(?:every|each)\s+{_COUNT}(?P<unit>minute|hour|day|week)s?", _interval),
    (
        rf"(?:(?:every|each)\s+(?P<days>{_list(_DAY)}|{_WORKDAYS}|weekends?|days?)"
        rf"|(?:on\s+)?(?P<plural>{_list(_PLURAL)}|{_WORKDAYS}|weekends)){_PART}{_AT}",
        _every,
    ),
    (rf"(?:(?:every|each|in\s+the)\s+(?P<part>{'|'.join(HOURS)})){_AT}", _daily),
    (rf"(?P<part>morning|evening|night)(?:s|ly){_AT}", _daily),
    (rf"daily{_PART}{_AT}", _daily),
    (rf"(?P<often>{'|'.join(_OFTEN)})\s+(?:a|per|every)\s+day{_AT}", _often),
    (
        r"(?:on\s+the\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+of\s+(?:every|each|the)\s+month"
        rf"|(?:monthly|(?:every|each)\s+month)(?:\s+on\s+the\s+(?P<other>\d{{1,2}})(?:st|nd|rd|th)?)?){_AT}",
        _monthly,
    ),
    (
        r"(?P<once>once\s+)?(?:on|when(?:ever)?|if|for|after)\s+(?:i\s+(?:add|write|create|save|import|make)\s+)?"
        r"(?:every\s+|each\s+|an?\s+|any\s+)?(?:new\s+)?notes?"
        rf"(?:\s+{_WHERE.format('')})?(?:{_HAPPENS}(?:\s+{_WHERE.format('_')})?)?",
        _new_notes,
    ),
    (
        r"(?:once\s+)?(?:(?:at|on)\s+)?(?P<date>\d{4}-\d{2}-\d{2})(?:(?:\s+at)?(?:\s+|T)(?P<at>.+?))?",
        _date,
    ),
    (
        rf"(?:once\s+)?(?P<day>today|tonight|tomorrow|(?:on|next|this)\s+(?:{_DAY})){_PART}{_AT}",
        _soon,
    ),
    (rf"(?:once\s+)?in\s+(?:(?P<half>half\s+an\s+hour)|{_COUNT}(?P<unit>minute|hour|day|week)s?)", _in),
    (
        r"(?:cron:?\s+)?(?P<cron>[\d*][^\s]*(?:\s+[^\s]+){4})",
        lambda match, now: Trigger(cron=match["cron"]),
    ),
)
"""The first that fits counts. Each gets the moment on the machine's own clock."""


def _count(said: str | None) -> int:
    return 1 if said is None else int(said) if said.isdecimal() else _COUNTS[said.lower()]


def _clocks(said: str | None, part: str | None, hours: tuple[int, ...] = (8,)) -> str:
    """Minute and hour fields of cron, for one time or for several."""
    if said is None:
        return f"0 {','.join(map(str, (HOURS[part.lower()],) if part else hours))}"
    times = [_clock(each) for each in re.split(r"\s*,\s*(?:and\s+)?(?:at\s+)?|\s+and\s+(?:at\s+)?", said)]
    if len({each.minute for each in times}) > 1:
        raise InvalidRequest(
            "Several times a day need the same minute. Write for example every day at 8:30 and 18:30."
        )
    return f"{times[0].minute} {','.join(str(hour) for hour in sorted({each.hour for each in times}))}"


def _clock(said: str) -> time:
    match = _CLOCK.fullmatch(said.strip())
    if match is None:
        raise InvalidRequest(f"There is no time {said}. Write for example 8:00, 8 pm or noon.")
    if match["name"]:
        return time(HOURS[match["name"].lower()])
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if half := (match["half"] or "").lower():
        if not 1 <= hour <= 12:
            raise InvalidRequest(f"There is no hour {hour} {half}. Write for example 8:00 or 8 pm.")
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    if hour > 23 or minute > 59:
        raise InvalidRequest(f"There is no time {hour}:{minute:02}. Write for example 8:00.")
    return time(hour, minute)


def _weekdays(days: str) -> str:
    if days in ("day", "days"):
        return "*"
    if days.startswith("weekend"):
        return "6,0"
    if re.fullmatch(_WORKDAYS, days):
        return "1-5"
    named = re.findall(r"[a-z]+", days.replace(" and ", " "))
    return ",".join(str(next(at for at, day in enumerate(DAYS) if day[:3] == name[:3])) for name in named)
