"""Cron expressions on a wall clock, without time zones: those come in where wall times become moments."""

from datetime import UTC, datetime, timedelta

from apscheduler.triggers.cron import CronTrigger

from domain.counting import counted

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_HORIZON = timedelta(days=9 * 366)
"""February 29 comes after eight years at the latest."""


class WallCron:
    """Five fields as cron(8) means them; `next` works on naive wall times.

    APScheduler counts weekdays from Monday and wants both the day of the month and the weekday to match. Cron counts
    from Sunday, and if both are given, either will do. Its own arithmetic over daylight saving is not used at all.
    """

    def __init__(self, expression: str) -> None:
        """Raises `ValueError` saying which part is wrong."""
        fields = expression.split()
        if len(fields) != 5:
            raise ValueError(
                f"it has {counted(len(fields), 'field')} instead of five: minute, hour, day, month, weekday"
            )
        minute, hour, day, month, weekday = fields
        weekday = _weekdays(weekday)
        pairs = [(day, weekday)]
        if "*" not in (day[0], weekday[0]):
            pairs = [(day, "*"), ("*", weekday)]
        self._triggers = [
            CronTrigger(minute=minute, hour=hour, day=d, month=month, day_of_week=w, timezone=UTC)
            for d, w in pairs
        ]

    def next(self, wall: datetime) -> datetime | None:
        """The first matching wall time at or after this one; none if there is none in nine years."""
        start = wall.replace(tzinfo=UTC, fold=0)
        found: list[datetime] = []
        for trigger in self._triggers:
            trigger.end_date = start + _HORIZON
            fire: datetime | None = trigger.get_next_fire_time(None, start)
            if fire is not None:
                found.append(fire.replace(tzinfo=None))
        return min(found, default=None)


def _weekdays(field: str) -> str:
    """Numbers into names; ranges become lists, since cron's week begins where APScheduler's ends."""
    return ",".join(_weekday(part) for part in field.lower().split(","))


def _weekday(part: str) -> str:
    bounds, _, step = part.partition("/")
    if bounds == "*" and not step:
        return "*"
    first, dash, last = ("0", "-", "6") if bounds == "*" else bounds.partition("-")
    start = _day_number(first)
    end = _day_number(last) if dash else (6 if step else start)
    if dash and end < start:
        end += 7
    stride = int(step) if step.isdecimal() else 0
    if step and not stride:
        raise ValueError(f"{part!r} is no weekday")
    return ",".join(_DAYS[day % 7] for day in range(start, end + 1, stride or 1))


def _day_number(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise ValueError(f"{text!r} is no weekday")
