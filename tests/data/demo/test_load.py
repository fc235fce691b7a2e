"""The load is the same each time, and the notes are fit for more than the demo."""

import itertools
import re

import pytest

from data.demo.load import CARDS, CHATS, DECK, GANAS, NOTES, build_load, describe, sample_notes
from domain.entities.llm import GenerationRequest, LlmTaskKind


def requests(kind: LlmTaskKind, window_s: float = 40) -> list[GenerationRequest]:
    load = build_load("tiny", window_s)
    return [job.request for job in (*load.background, *load.chats) if job.request.kind is kind]


def test_forty_notes_with_tags_that_link_to_each_other() -> None:
    notes = sample_notes()
    titles = {note.title for note in notes}
    assert len(notes) == len(titles) == NOTES
    linked: set[str] = set()
    for note in notes:
        links = set(re.findall(r"\[\[(.+?)\]\]", note.text))
        assert note.tags
        assert links, note.title
        assert links <= titles - {note.title}
        assert 90 <= len(note.text.split()) <= 140, note.title
        linked |= links
    assert len(linked) > 30


def test_the_load_is_deterministic() -> None:
    assert build_load("tiny", 40) == build_load("tiny", 40)


def test_what_is_asked_for() -> None:
    cards = requests(LlmTaskKind.NATARAJ)
    assert len(cards) == CARDS
    assert {card.flow for card in cards} == {DECK}
    assert {card.messages[0].content.count("\n# ") for card in cards} == {2, 3}
    assert len({card.messages for card in cards}) == CARDS
    extractions = requests(LlmTaskKind.EXTRACT)
    assert len({job.flow for job in extractions}) == len(extractions) == NOTES
    assert all(job.json_schema is not None for job in extractions)
    assert len({job.flow for job in requests(LlmTaskKind.GANA)}) == GANAS
    assert len({job.flow for job in requests(LlmTaskKind.CHAT)}) == CHATS
    assert f"{CARDS} cards" in describe()


@pytest.mark.parametrize("window_s", [2.0, 40.0, 600.0])
def test_moments_are_irregular_and_inside_the_window(window_s: float) -> None:
    load = build_load("tiny", window_s)
    moments = [chat.at_s for chat in load.chats]
    gaps = {round((b - a) / window_s, 3) for a, b in itertools.pairwise(moments)}
    assert len(gaps) == CHATS - 1
    assert 0 < moments[0] < moments[-1] < 0.8 * window_s
    dues = [(job.at_s, job.due_s) for job in load.background if job.due_s is not None]
    assert len(dues) == GANAS
    assert all(at_s < due_s < window_s for at_s, due_s in dues)
