"""What a program says of the order of its own requests, and of how long its model stays."""

import pytest

from data.scheduling import events as ev
from data.scheduling.jobs import JobSpec
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind

API, GANA = LlmTaskKind.API, LlmTaskKind.GANA


class Desk:
    """A scheduler with model X loaded, and one job on it that keeps it busy."""

    def __init__(self, *, keep: float | None = None, hint: bool = True) -> None:
        self.scheduler = InferenceScheduler(resident="X")
        self.told: list[ev.Instruction] = []
        self.submit(0, JobSpec("first", API, "a", "X", foreground_hint=hint, keep_alive_s=keep))

    def feed(self, event: ev.Event) -> list[ev.Instruction]:
        new = list(self.scheduler.handle(event).instructions)
        self.told += new
        return new

    def submit(self, at: float, spec: JobSpec) -> list[ev.Instruction]:
        return self.feed(ev.Submit(at, spec))

    def serve(self, at: float) -> str:
        """Ends the running job; who runs next."""
        job = self.scheduler.running
        assert job is not None
        self.feed(ev.Completed(at, job.id, 1))
        return self.scheduler.running.id if self.scheduler.running else ""

    def order(self) -> list[str]:
        served = []
        at = 1.0
        while running := self.serve(at):
            served.append(running)
            at += 1
        return served


@pytest.mark.parametrize("hint", [True, False])
def test_a_lower_rank_goes_first_in_its_own_flow_only(hint: bool) -> None:
    desk = Desk()
    for name, flow, rank in (("a5", "a", 5), ("a1", "a", 1), ("b9", "b", 9), ("a1 too", "a", 1)):
        desk.submit(0, JobSpec(name, API, flow, "X", foreground_hint=hint, rank=rank))
    order = desk.order()
    assert [name for name in order if name[0] == "a"] == ["a1", "a1 too", "a5"]
    assert order.index("b9") < 2  # b is not behind a for the numbers that it gives its own


def test_a_model_is_unloaded_when_it_was_kept_for_long_enough() -> None:
    desk = Desk(keep=5)
    desk.serve(10)
    assert desk.scheduler.wake_at == 15
    assert ev.Unload() not in desk.told
    desk.feed(ev.Tick(15))
    assert desk.told[-1] == ev.Unload()
    assert desk.scheduler.residence.model is None
    assert ev.Load("X") in desk.submit(20, JobSpec("again", API, "a", "X"))


def test_at_once_when_it_is_not_to_be_kept_at_all() -> None:
    desk = Desk(keep=0)
    desk.serve(10)
    assert ev.Unload() in desk.told


@pytest.mark.parametrize(("loaded_at", "unloads_at"), [(13.0, 15.0), (16.0, 16.0)])
def test_a_model_that_is_loaded_anew_is_kept_no_longer_for_it(loaded_at: float, unloads_at: float) -> None:
    desk = Desk(keep=5)
    desk.serve(10)
    assert ev.Load("X") in desk.feed(ev.Reload(12))
    desk.feed(ev.Loaded(loaded_at, "X"))
    if unloads_at > loaded_at:
        assert desk.scheduler.wake_at == unloads_at
        desk.feed(ev.Tick(unloads_at))
    assert desk.told[-1] == ev.Unload()
    assert desk.scheduler.residence.model is None


@pytest.mark.parametrize("asked_at", [12.5, 14.0])
def test_unless_something_is_asked_of_it(asked_at: float) -> None:
    desk = Desk(keep=5)
    desk.serve(10)
    desk.feed(ev.Reload(12))
    events: list[ev.Event] = [ev.Loaded(13, "X"), ev.Submit(asked_at, JobSpec("again", API, "a", "X"))]
    for event in sorted(events, key=lambda event: event.at):
        desk.feed(event)
    desk.serve(20)
    assert ev.Unload() not in desk.told
    assert desk.scheduler.wake_at is None


def test_not_while_something_is_asked_of_it_and_the_newest_word_counts() -> None:
    desk = Desk(keep=0)
    desk.submit(1, JobSpec("second", API, "a", "X", foreground_hint=True))
    desk.serve(10)
    assert ev.Unload() not in desk.told
    desk.serve(20)
    assert ev.Unload() not in desk.told
    assert desk.scheduler.wake_at is None


@pytest.mark.parametrize(("hint", "stays"), [(True, True), (False, False)])
def test_background_work_swaps_away_no_model_that_a_waiting_program_keeps(hint: bool, stays: bool) -> None:
    desk = Desk(keep=60, hint=hint)
    desk.submit(1, JobSpec("other", GANA, "g", "Y"))
    desk.serve(30)
    assert (desk.scheduler.loading is None) == stays
    if stays:
        assert desk.scheduler.wake_at is not None
        desk.feed(ev.Tick(90))
        assert desk.scheduler.loading is not None


def test_a_cancelled_job_that_never_ran_says_nothing_of_the_model() -> None:
    desk = Desk(keep=50)
    desk.submit(1, JobSpec("gone", API, "a", "X", keep_alive_s=0.0))
    desk.feed(ev.Cancel(2, "gone"))
    desk.serve(3)
    assert ev.Unload() not in desk.told
    assert desk.scheduler.wake_at == 53
