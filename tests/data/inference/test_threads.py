"""Threads are given up under contention and taken back after it."""

from collections.abc import Callable

from data.clock import SystemClock
from data.inference.threads import MAX_HOLD_S, WINDOW, ThreadGovernor


class HandClock(SystemClock):
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def quiet(threads: int) -> float:
    return 0.010 if threads == 2 else 0.0135


def contended(threads: int) -> float:
    return 0.3 if threads == 2 else 0.04


def decode(governor: ThreadGovernor, clock: HandClock, cost: Callable[[int], float], seconds: float) -> float:
    """Decodes for so long; the share of tokens computed with all threads."""
    end = clock.seconds + seconds
    tokens = full = 0
    while clock.seconds < end:
        took = cost(governor.threads)
        tokens += 1
        full += governor.threads == 2
        clock.seconds += took
        governor.learn(1, took)
    return full / tokens


def test_a_quiet_machine_computes_with_all_threads_but_for_a_few_trials() -> None:
    clock = HandClock()
    assert decode(ThreadGovernor(2, clock), clock, quiet, 300) > 0.99


def test_contention_is_answered_within_two_windows_and_for_as_long_as_it_lasts() -> None:
    clock = HandClock()
    governor = ThreadGovernor(2, clock)
    decode(governor, clock, quiet, 300)
    for _ in range(3 * WINDOW):
        governor.learn(1, contended(governor.threads))
    assert governor.threads == 1
    assert decode(governor, clock, contended, 300) < 0.02


def test_contention_from_the_very_start_is_noticed_too() -> None:
    clock = HandClock()
    governor = ThreadGovernor(2, clock)
    decode(governor, clock, contended, 3)
    assert governor.threads == 1


def test_all_threads_come_back_when_the_machine_is_quiet_again() -> None:
    clock = HandClock()
    governor = ThreadGovernor(2, clock)
    decode(governor, clock, contended, 300)
    decode(governor, clock, quiet, MAX_HOLD_S + 1)
    assert decode(governor, clock, quiet, 60) > 0.95


def test_prefill_decides_nothing_and_a_single_thread_stays() -> None:
    clock = HandClock()
    governor, single = ThreadGovernor(8, clock), ThreadGovernor(1, clock)
    for _ in range(100):
        clock.seconds += 10
        governor.learn(64, 10.0)
        single.learn(1, 10.0)
    assert (governor.threads, single.threads) == (8, 1)


def test_of_many_threads_a_quarter_is_given_up() -> None:
    clock = HandClock()
    governor = ThreadGovernor(8, clock)
    for _ in range(WINDOW):
        clock.seconds += 1
        governor.learn(1, 1.0)
    assert governor.threads == 6


def test_prefill_has_no_part_in_a_trial() -> None:
    clock = HandClock()
    governor = ThreadGovernor(2, clock)
    seen = set()
    for _ in range(2000):
        took = quiet(governor.threads)
        clock.seconds += took
        governor.learn(1, took)
        seen.add((governor.threads, governor.kept))
    assert seen == {(2, 2), (1, 2)}


def test_a_hiccup_does_not_cost_the_threads_for_long() -> None:
    clock = HandClock()
    governor = ThreadGovernor(2, clock)

    def hardly_slower_alone(threads: int) -> float:
        return 0.0122 if threads == 2 else 0.0128

    decode(governor, clock, hardly_slower_alone, 60)
    for _ in range(3 * WINDOW):
        governor.learn(1, contended(governor.threads))
    assert governor.threads == 1
    decode(governor, clock, hardly_slower_alone, 3)
    assert decode(governor, clock, hardly_slower_alone, 60) > 0.95


def test_a_pause_in_one_token_changes_nothing() -> None:
    clock = HandClock()
    governor = ThreadGovernor(2, clock)
    decode(governor, clock, quiet, 60)
    for token in range(100 * WINDOW):
        took = 0.06 if token % WINDOW == 3 else quiet(governor.threads)
        governor.learn(1, took)
        assert governor.threads == 2
