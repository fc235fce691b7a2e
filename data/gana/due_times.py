"""When a Gana is due: intervals in real time, cron expressions on the machine's wall clock."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, pairwise

from tzlocal import reload_localzone

from data.gana.cron import WallCron
from domain.entities.gana import MIN_INTERVAL_MINUTES, GanaDraft
from domain.errors import InvalidRequest

_LONGEST_GAP = timedelta(hours=25)
"""A clock change leaves out an hour as a rule, and a day at most (Samoa, 2011)."""
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall time
_CHECKED_DAYS = 800
"""On which it fires: enough for every pair of neighbouring days that comes within two years."""
_FIRST_LOOK = timedelta(days=1)


class CalendarDueTimes:
    """Implements `DueTimes`. The zone is asked for each time: a machine that travels changes it while we run."""

    def __init__(self, zone: Callable[[], tzinfo] = reload_localzone) -> None:
        self._zone = zone

    def validate(self, draft: GanaDraft) -> None:
        if draft.cron is None:
            return
        try:
            cron = _cron(draft.cron)
        except (ValueError, TypeError) as error:
            reason = str(error).rstrip(".")
            raise InvalidRequest(
                f"{draft.cron!r} is no cron expression: {reason}. Write for example 0 8 * * 1-5."
            ) from None
        if cron.next(_SOME_DAY) is None:
            raise InvalidRequest(f"{draft.cron!r} never comes: no such day exists. Correct it.")
        if _too_often(draft.cron):
            raise InvalidRequest(
                f"{draft.cron!r} fires more often than every {MIN_INTERVAL_MINUTES} minutes. Leave it more time."
            )

    def local(self, wall: datetime) -> datetime:
        return _moment(wall, self._zone())

    def wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone()).replace(tzinfo=None, fold=0)

    def next_after(self, draft: GanaDraft, after: datetime) -> datetime | None:
        after = after.astimezone(UTC)  # between times of one zone Python computes on the wall clock
        if draft.mode == "one_shot":
            once = draft.once_at
            return once.astimezone(UTC) if once is not None and once > after else None
        if draft.interval_minutes is not None:
            return after + timedelta(minutes=draft.interval_minutes)
        if draft.cron is not None:
            return _next(_cron(draft.cron), after, self._zone())
        return None

    def missed(self, draft: GanaDraft, due_at: datetime, now: datetime, limit: int) -> tuple[datetime, ...]:
        due_at, now = due_at.astimezone(UTC), now.astimezone(UTC)
        if due_at > now or limit < 1:
            return ()
        if draft.interval_minutes is not None:
            step = timedelta(minutes=draft.interval_minutes)
            last = (now - due_at) // step
            return tuple(due_at + step * at for at in range(max(0, last - limit + 1), last + 1))
        if draft.cron is None or draft.mode == "one_shot":
            return (due_at,)
        # Backwards in growing looks, so that years of absence cost no more than what is asked for.
        cron, zone, look = _cron(draft.cron), self._zone(), _FIRST_LOOK
        while True:
            start = max(due_at, now - look)
            found = deque([due_at] if start == due_at else [], maxlen=limit)
            found.extend(_fires(cron, zone, start, now))
            if start == due_at or len(found) == limit:
                return tuple(found)
            look *= 4


@lru_cache(maxsize=256)
def _cron(expression: str) -> WallCron:
    return WallCron(expression)


def _too_often(expression: str) -> bool:
    """Whether two of its times are too near each other on one day, or over midnight of two days on which it fires."""
    minute, hour, day, month, weekday = expression.split()
    least, midnight = timedelta(minutes=MIN_INTERVAL_MINUTES), _SOME_DAY + timedelta(days=1)
    times = _wall_times(WallCron(f"{minute} {hour} * * *"))
    fire = next(times)
    for following in times:
        if following - fire < least:
            return fire.date() == following.date() or _on_neighbours(WallCron(f"0 0 {day} {month} {weekday}"))
        if following >= midnight:
            break
        fire = following
    return False


def _on_neighbours(days: WallCron) -> bool:
    """Whether it fires on a day and on the next."""
    found = list(islice(_wall_times(days), _CHECKED_DAYS))
    return any(next_day - day == timedelta(days=1) for day, next_day in pairwise(found))


def _wall_times(cron: WallCron) -> Iterator[datetime]:
    at = cron.next(_SOME_DAY)
    while at is not None:
        yield at
        at = cron.next(at + timedelta(minutes=1))


def _fires(cron: WallCron, zone: tzinfo, after: datetime, until: datetime) -> Iterator[datetime]:
    fire = _next(cron, after, zone)
    while fire is not None and fire <= until:
        yield fire
        fire = _next(cron, fire, zone)


def _next(cron: WallCron, after: datetime, zone: tzinfo) -> datetime | None:
    """The first moment after another at which the wall clock shows a matching time.

    A wall time that comes twice counts the first time; one that is left out counts as if the clock had not yet been
    changed, which is the same distance after the change. Such moments lie later than the wall times that follow them,
    so the search starts before a change and goes on until nothing earlier can come.
    """
    local = after.astimezone(zone)
    wall = local.replace(tzinfo=None, fold=0)
    before = (local - _LONGEST_GAP).replace(tzinfo=None)
    changed = (after - _LONGEST_GAP).astimezone(zone).utcoffset() != local.utcoffset()
    at = cron.next(before if changed else wall)
    best: datetime | None = None
    while at is not None and (best is None or at <= best.astimezone(zone).replace(tzinfo=None)):
        moment = _moment(at, zone)
        if moment > after and (best is None or moment < best):
            best = moment
            if not _left_out(at, moment, zone):
                break
        at = cron.next(at + timedelta(minutes=1))
    return best


def _moment(wall: datetime, zone: tzinfo) -> datetime:
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def _left_out(wall: datetime, moment: datetime, zone: tzinfo) -> bool:
    return moment.astimezone(zone).replace(tzinfo=None) != wall
