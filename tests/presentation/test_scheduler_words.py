"""The words for what the scheduler does: every reason that the policy gives has some."""

import re

import pytest

from domain.entities.llm import LlmTaskKind
from domain.entities.scheduler import Decision, JobView
from presentation.scheduler_words import (
    TIERS,
    because,
    decision_sentence,
    kind_name,
    progress_part,
    progress_words,
    seconds,
    short_flow,
    start_words,
    wait_words,
)
from tests.data.scheduling.scenario_families import FAMILIES, scenario
from tests.data.scheduling.test_history import played

JARGON = re.compile(r"\bT\d\b|vruntime|outranks|resident|\(hint\)|fair pool|extract\b")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("extract (37a01610da7a) runs", "the reading of a note has the model"),
        ("gana (a (b)) runs, 1 more before it", "a Gana has the model, 1 more goes first"),
        ("gana (a (b)) runs, 2 more before it", "a Gana has the model, 2 more go first"),
        (
            "api (k) runs, 10 or more before it",
            "another program's question has the model, 10 or more go first",
        ),
        ("stopping nataraj (all)", "stopping a deck card"),
        ("loading tiny, 1 s of about 2 s", "loading tiny, 1 s of about 2 s"),
        ("nothing to do", "nothing waits"),
    ],
)
def test_who_waits_is_told_no_id(reason: str, words: str) -> None:
    assert wait_words(reason) == words


@pytest.mark.parametrize("family", FAMILIES)
def test_no_reason_of_the_policy_is_left_in_its_own_jargon(family: str) -> None:
    decisions: list[Decision] = []
    for seed in range(2):
        history, simulation, _ = played(scenario(family, seed), window_s=1e9)
        decisions += history.recent().decisions
        assert not JARGON.search(because(simulation.scheduler.last_reason))
    assert decisions
    for decision in decisions:
        assert because(decision.reason) != decision.reason or "model" in decision.reason, decision.reason
        assert not JARGON.search(decision_sentence(decision)), decision


def test_an_unknown_reason_is_told_as_it_is() -> None:
    assert because("first come, first served") == "first come, first served"


def test_a_decision_is_a_sentence() -> None:
    decision = Decision(
        at=1.0,
        what="stop",
        job="n1",
        kind=LlmTaskKind.NATARAJ,
        flow="all",
        model="X",
        reason="chat (T0) outranks T4",
        by="c1",
        by_kind=LlmTaskKind.CHAT,
    )
    said = decision_sentence(decision)
    assert said == "Deck (all) made way for Chat: “Chat” comes before “Fair turns”."


def job(**more: object) -> JobView:
    fields: dict[str, object] = {
        "id": "c1",
        "kind": LlmTaskKind.CHAT,
        "flow": "f",
        "model": "X",
        "tier": 0,
        "position": 0,
        "state": "running",
        "estimated_start_s": 0.0,
        "waited_s": 0.0,
        "tokens_done": 0,
        "service_s": 1.0,
        "preemptions": 0,
    }
    return JobView.model_validate(fields | more)


def test_progress_is_of_the_prompt_first_then_of_the_answer() -> None:
    assert (progress_words(job()), progress_part(job())) == ("beginning", None)
    reading = job(prompt_tokens=200, prefilled_tokens=50, max_tokens=100)
    assert (progress_words(reading), progress_part(reading)) == (
        "reading the prompt: 50 of 200 tokens",
        0.25,
    )
    writing = job(prompt_tokens=200, prefilled_tokens=200, max_tokens=100, tokens_done=10)
    assert (progress_words(writing), progress_part(writing)) == ("writing: 10 of at most 100 tokens", 0.1)
    assert progress_words(job(state="stopping", tokens_done=3)) == "stopping after 3 tokens"


def test_durations_and_names_are_short() -> None:
    assert [seconds(s) for s in (0.04, 9.96, 61.0, 150.0, 40_000.0)] == [
        "0.0 s",
        "10 s",
        "61 s",
        "2 min",
        "11 h",
    ]
    assert short_flow("all") == "all"
    assert len(short_flow("01J8" * 10)) == 15
    assert short_flow("A conversation about bees and willows") == "A conversation about be…"
    assert kind_name("gana") == "Gana"
    assert kind_name("something") == "something"
    assert set(TIERS) == set(range(6))


@pytest.mark.parametrize(
    ("position", "start_s", "said"),
    [(1, 0.0, "next"), (2, 0.04, "soon"), (1, 3.21, "3.2 s"), (4, 64.0, "64 s")],
)
def test_a_start_in_no_time_is_told_as_a_place(position: int, start_s: float, said: str) -> None:
    assert start_words(job(position=position, estimated_start_s=start_s, state="queued")) == said


def test_one_token_is_no_tokens() -> None:
    assert progress_words(job(state="stopping", tokens_done=1)) == "stopping after 1 token"
    assert progress_words(job(state="running", tokens_done=1, max_tokens=None)).endswith("writing: 1 token")
    assert progress_words(job(state="running", tokens_done=1, max_tokens=1)).endswith("1 of at most 1 token")
