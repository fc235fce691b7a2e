"""A long queue of readers must not take the event loop from the one who is being answered."""

from data.scheduling.handle import LONGEST_PERIOD_S, WAITING_PERIOD_S, _period_s
from domain.entities.llm import Waiting


def period_s(position: int) -> float:
    period = _period_s(Waiting(position=position, estimated_start_s=None, reason="r"))
    assert period is not None
    return period


def test_who_is_next_hears_soon_and_who_is_far_back_seldom() -> None:
    assert WAITING_PERIOD_S <= period_s(1) < 2 * WAITING_PERIOD_S
    assert period_s(100_000) == LONGEST_PERIOD_S
    assert sum(1 / period_s(position) for position in range(1, 1001)) < 100


def test_who_does_not_wait_is_told_by_events_only() -> None:
    assert _period_s(None) is None
