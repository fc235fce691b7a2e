"""What a search says it has found."""

import pytest

from domain.entities.note import SearchHit
from presentation.web.notes_list import _near_words, _with_words

HIT = SearchHit(note_id="n", title="N", snippet="", score=1.0)


@pytest.mark.parametrize(
    ("words", "near", "said"),
    [
        (0, 0, "No note has these words"),
        (0, 1, "No note has these words; 1 is close in meaning"),
        (0, 2, "No note has these words; 2 are close in meaning"),
        (1, 0, "1 note with these words"),
        (2, 3, "2 notes with these words, 3 more close in meaning"),
    ],
)
def test_what_was_found(words: int, near: int, said: str) -> None:
    assert _with_words([HIT] * words) + _near_words(near, words) == said
