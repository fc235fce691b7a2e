"""Due times over clock changes, long absences and odd expressions."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.gana.due_times import CalendarDueTimes
from domain.entities.gana import GanaDraft
from domain.errors import InvalidRequest

BERLIN = ZoneInfo("Europe/Berlin")
DUE = CalendarDueTimes(lambda: BERLIN)


def cron(expression: str) -> GanaDraft:
    return GanaDraft(name="g", task="t", cron=expression)


def every(minutes: int) -> GanaDraft:
    return GanaDraft(name="g", task="t", interval_minutes=minutes)


def berlin(year: int, month: int, day: int, hour: int = 0, minute: int = 0, fold: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN, fold=fold)


def fires(draft: GanaDraft, after: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    at = DUE.next_after(draft, after)
    while at is not None and at <= until:
        found.append(at)
        at = DUE.next_after(draft, at)
    return found


def walls(moments: list[datetime]) -> list[str]:
    return [moment.astimezone(BERLIN).strftime("%a %d %H:%M") for moment in moments]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 8 * * *", ["Thu 01 08:00", "Fri 02 08:00"]),
        ("0 8 * * 1-5", ["Thu 01 08:00", "Fri 02 08:00", "Mon 05 08:00"]),
        ("0 8 * * 0", ["Sun 04 08:00", "Sun 11 08:00"]),
        ("0 8 * * 7", ["Sun 04 08:00", "Sun 11 08:00"]),
        ("0 8 * * 5-7", ["Fri 02 08:00", "Sat 03 08:00", "Sun 04 08:00", "Fri 09 08:00"]),
        ("0 8 * * sat-mon", ["Sat 03 08:00", "Sun 04 08:00", "Mon 05 08:00", "Sat 10 08:00"]),
        ("0 8 * * */3", ["Sat 03 08:00", "Sun 04 08:00", "Wed 07 08:00"]),
        ("0 8 * * MON,4", ["Thu 01 08:00", "Mon 05 08:00"]),
        # Both days given: either will do.
        ("0 8 3 * 1", ["Sat 03 08:00", "Mon 05 08:00"]),
        ("0 8 31 * *", ["Sat 31 08:00", "Tue 31 08:00"]),
    ],
)
def test_fields_mean_what_cron_means(expression: str, expected: list[str]) -> None:
    found = fires(cron(expression), berlin(2026, 1, 1), berlin(2026, 4, 1))
    assert walls(found)[: len(expected)] == expected


def test_a_time_that_is_left_out_in_spring_comes_as_much_later() -> None:
    found = fires(cron("30 2 * * *"), berlin(2026, 3, 28), berlin(2026, 3, 31))
    assert walls(found) == ["Sat 28 02:30", "Sun 29 03:30", "Mon 30 02:30"]


def test_a_time_that_comes_twice_in_autumn_fires_once() -> None:
    found = fires(cron("30 2 * * *"), berlin(2026, 10, 24), berlin(2026, 10, 27))
    assert walls(found) == ["Sat 24 02:30", "Sun 25 02:30", "Mon 26 02:30"]
    assert found[1] == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    # Nor does one who asks between the two get the second.
    assert DUE.next_after(cron("30 2 * * *"), berlin(2026, 10, 25, 2, 10, fold=1)) == found[2]


def test_eight_o_clock_is_eight_o_clock_all_year() -> None:
    found = fires(cron("0 8 * * *"), berlin(2026, 1, 1), berlin(2026, 12, 31))
    assert {moment.astimezone(BERLIN).hour for moment in found} == {8}
    assert len(found) == 364


def test_each_hour_of_both_odd_days() -> None:
    spring = fires(cron("0,30 * * * *"), berlin(2026, 3, 29), berlin(2026, 3, 29, 5))
    assert walls(spring)[:6] == [
        f"Sun 29 {t}" for t in ("00:30", "01:00", "01:30", "03:00", "03:30", "04:00")
    ]
    autumn = fires(cron("0,30 * * * *"), berlin(2026, 10, 25, 1), berlin(2026, 10, 25, 4))
    assert walls(autumn) == [f"Sun 25 {t}" for t in ("01:30", "02:00", "02:30", "03:00", "03:30", "04:00")]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["*/7 * * * *", "0,30 2,3 * * *", "15 1-3 * * 0", "5 2 29 3 *", "59 2 * * 6,7"]),
    st.sampled_from([berlin(2026, 3, 28), berlin(2026, 10, 24)]),
    st.integers(0, 3 * 24 * 60),
)
def test_what_comes_next_depends_on_the_moment_only(expression: str, day: datetime, minutes: int) -> None:
    """From any moment the next fire is the first of the whole series after it: none twice, none lost."""
    series = fires(cron(expression), day, day.astimezone(UTC) + timedelta(days=4))
    assert series == sorted(set(series))
    moment = day.astimezone(UTC) + timedelta(minutes=minutes)
    later = [fire for fire in series if fire > moment]
    if later:
        assert DUE.next_after(cron(expression), moment) == later[0]


def test_a_day_that_a_whole_country_left_out() -> None:
    samoa = CalendarDueTimes(lambda: ZoneInfo("Pacific/Apia"))
    found = samoa.missed(
        cron("0 8 * * *"),
        datetime(2011, 12, 28, 18, tzinfo=UTC),
        datetime(2012, 1, 1, tzinfo=UTC),
        10,
    )
    assert list(found) == sorted(set(found))


def test_intervals_run_in_real_time() -> None:
    spring = fires(every(60), berlin(2026, 3, 29, 1), berlin(2026, 3, 29, 4))
    assert walls(spring) == ["Sun 29 03:00", "Sun 29 04:00"]


def test_missed_times_are_the_newest_ones() -> None:
    now = berlin(2026, 6, 10, 12)
    daily = DUE.missed(cron("0 8 * * *"), berlin(2026, 6, 7, 8), now, 24)
    assert walls(list(daily)) == ["Sun 07 08:00", "Mon 08 08:00", "Tue 09 08:00", "Wed 10 08:00"]
    assert walls(list(DUE.missed(cron("0 8 * * *"), berlin(2026, 6, 7, 8), now, 2))) == [
        "Tue 09 08:00",
        "Wed 10 08:00",
    ]
    assert DUE.missed(every(30), berlin(2026, 6, 10, 10, 45), now, 3) == tuple(
        berlin(2026, 6, 10, hour, minute) for hour, minute in ((10, 45), (11, 15), (11, 45))
    )
    assert len(DUE.missed(every(5), berlin(2016, 6, 10), now, 24)) == 24
    assert len(DUE.missed(cron("*/5 * * * *"), berlin(2016, 6, 10), now, 24)) == 24
    assert DUE.missed(cron("0 8 * * *"), now + timedelta(seconds=1), now, 5) == ()
    # A due time that the present expression would not give is due all the same.
    assert DUE.missed(cron("0 8 * * *"), berlin(2026, 6, 10, 9, 17), now, 5) == (berlin(2026, 6, 10, 9, 17),)


def test_once_is_once() -> None:
    at = berlin(2026, 6, 10, 9)
    draft = GanaDraft(name="g", task="t", mode="one_shot", once_at=at)
    assert DUE.next_after(draft, at - timedelta(days=1)) == at
    assert DUE.next_after(draft, at) is None
    assert DUE.missed(draft, at, at + timedelta(days=3), 5) == (at,)
    assert DUE.next_after(GanaDraft(name="g", task="t"), at) is None


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("8", "1 field instead"),
        ("0 8 * *", "4 fields"),
        ("0 8 * * * *", "6 fields"),
        ("61 8 * * *", "no cron expression"),
        ("a b c d e", "no cron expression"),
        ("0 8 * * 8", "'8' is no weekday"),
        ("0 8 * * 1/0", "no weekday"),
        ("0 0 30 2 *", "never comes"),
        ("* * * * *", "every 5 minutes"),
        ("0,1 8 * * *", "every 5 minutes"),
        ("59,1 8,9 * * *", "every 5 minutes"),
        ("0,59 0,2,4,6,8,10,12,14,16,18,20,23 1-31/2 * *", "every 5 minutes"),
        ("0,58 0,23 * * sun,mon", "every 5 minutes"),
        ("0,57 0,23 1,31 1,12 *", "every 5 minutes"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_reason(expression: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        DUE.validate(cron(expression))


@pytest.mark.parametrize(
    "expression", ["*/5 * * * *", "0,59 0,23 * * mon,wed", "0 8 * * 1-5", "0 0 29 2 *", "0 0 1 1 *"]
)
def test_a_right_expression_is_accepted(expression: str) -> None:
    DUE.validate(cron(expression))


def test_a_naive_time_is_on_the_machines_clock() -> None:
    assert DUE.local(datetime.fromisoformat("2026-07-01T09:00")) == datetime(2026, 7, 1, 7, tzinfo=UTC)
