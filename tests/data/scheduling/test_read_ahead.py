"""A chat's prompt that is read while its user still types."""

import pytest

from data.scheduling import events as ev
from data.scheduling.jobs import JobSpec
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import GenerationRequest, LlmTaskKind

CHAT, NATARAJ = LlmTaskKind.CHAT, LlmTaskKind.NATARAJ


class Desk:
    """A scheduler with model X loaded and a deck card on it, while the user looks at a chat."""

    def __init__(self) -> None:
        self.scheduler = InferenceScheduler(resident="X")
        self.scheduler.handle(ev.SetForeground(0, CHAT, "conv"))
        self.submit(0, JobSpec("card", NATARAJ, "deck", "X"))

    def submit(self, at: float, spec: JobSpec) -> tuple[ev.Instruction, ...]:
        return self.scheduler.handle(ev.Submit(at, spec)).instructions

    def type(self, at: float, name: str = "typed", flow: str = "conv", model: str = "X") -> None:
        self.submit(at, JobSpec(name, CHAT, flow, model, foreground_hint=True, ahead=True))

    def stopped(self, at: float) -> str:
        """The running job has stopped; who runs now."""
        job = self.scheduler.running
        assert job is not None
        self.scheduler.handle(ev.Stopped(at, job.id, 0))
        return self.running

    def finished(self, at: float) -> str:
        job = self.scheduler.running
        assert job is not None
        self.scheduler.handle(ev.Completed(at, job.id, 1))
        return self.running

    @property
    def running(self) -> str:
        return self.scheduler.running.id if self.scheduler.running is not None else ""

    def tier(self, name: str) -> int:
        return self.scheduler.policy.tier(self.scheduler.jobs[name])


def test_typing_stops_a_deck_card_and_the_card_goes_on() -> None:
    desk = Desk()
    desk.type(1)
    assert desk.tier("typed") == 1
    assert desk.stopped(1.1) == "typed"
    assert desk.finished(1.5) == "card"


def test_what_is_sent_by_anybody_goes_before_what_is_typed() -> None:
    desk = Desk()
    desk.type(1)
    desk.stopped(1.1)
    desk.submit(1.2, JobSpec("sent", CHAT, "other", "X"))
    assert desk.stopped(1.3) == "sent"
    assert desk.finished(2) == "typed"


def test_who_typed_has_not_had_its_turn() -> None:
    desk = Desk()
    desk.submit(0.5, JobSpec("first", CHAT, "other", "X"))
    desk.stopped(0.6)
    desk.type(0.7)
    desk.finished(1)  # other has had a turn, conv has read ahead only
    desk.finished(1.5)
    desk.submit(2, JobSpec("a", CHAT, "other", "X"))
    desk.submit(2, JobSpec("b", CHAT, "conv", "X"))
    assert desk.stopped(2.1) == "b"


def test_once_the_user_looks_elsewhere_it_comes_after_everything() -> None:
    desk = Desk()
    desk.type(1)
    desk.scheduler.handle(ev.SetForeground(1.05, None))
    assert desk.tier("typed") == 5
    assert desk.stopped(1.1) == "card"
    assert desk.finished(9) == "typed"


def test_its_model_is_loaded_at_once_for_a_user_who_types() -> None:
    desk = Desk()
    desk.type(1, model="Y")
    desk.scheduler.handle(ev.Stopped(1.1, "card", 0))
    assert desk.scheduler.loading is not None
    assert desk.scheduler.loading.model == "Y"


def test_nobody_joins_it_for_an_answer() -> None:
    desk = Desk()
    desk.submit(1, JobSpec("typed", CHAT, "conv", "X", coalesce_key="k", foreground_hint=True, ahead=True))
    desk.submit(1, JobSpec("sent", CHAT, "conv", "X", coalesce_key="k"))
    assert set(desk.scheduler.jobs) == {"card", "typed", "sent"}


@pytest.mark.parametrize("wrong", [{"kind": "gana"}, {"max_tokens": 5}])
def test_only_a_chat_is_read_ahead_and_for_one_token(wrong: dict[str, object]) -> None:
    right = {"kind": "chat", "flow": "c", "model": "X", "prompt": "a", "max_tokens": 1, "ahead": True}
    assert GenerationRequest.model_validate(right).ahead
    with pytest.raises(ValueError, match="read ahead"):
        GenerationRequest.model_validate({**right, **wrong})
