from hypothesis import given
from hypothesis import strategies as st

from data.clock import SystemClock
from data.inference.start_pace import StartPace


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


def start(pace: StartPace, clock: HandClock) -> float:
    """How long this start waited."""
    wait_s = pace.wait_s()
    clock.at += wait_s
    pace.started()
    return wait_s


def test_pauses_grow_and_then_the_window_counts() -> None:
    clock = HandClock()
    pace = StartPace(5, 60, clock)
    assert [start(pace, clock) for _ in range(6)] == [0, 0, 0.5, 1, 2, 56.5]


def test_a_finished_job_and_an_old_start_are_no_reason_to_wait() -> None:
    clock = HandClock()
    pace = StartPace(5, 60, clock)
    for _ in range(5):
        start(pace, clock)
    pace.clear()
    assert [start(pace, clock) for _ in range(3)] == [0, 0, 0.5]
    clock.at += 60
    assert start(pace, clock) == 0


@given(
    st.integers(1, 8),
    st.floats(0.1, 1000),
    st.lists(st.floats(0, 50), max_size=30),
)
def test_no_window_has_more_starts_than_the_limit_and_no_wait_is_longer_than_it(
    limit: int, window_s: float, gaps: list[float]
) -> None:
    clock = HandClock()
    pace, starts = StartPace(limit, window_s, clock), list[float]()
    for gap in gaps:
        clock.at += gap
        assert 0 <= start(pace, clock) <= window_s
        starts.append(clock.at)
    for first, beyond in zip(starts, starts[limit:], strict=False):
        assert beyond - first >= window_s - 1e-6
