import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.usecases.thinking import ThinkingFold


def fold(*pieces: str) -> tuple[str, str, str, str]:
    folding = ThinkingFold()
    told = [folding.feed(piece) for piece in pieces] + [folding.end()]
    return "".join(a for a, _ in told), "".join(t for _, t in told), folding.answer, folding.thinking


WHOLE = "<think>Is it?\nYes.</think>\n\nIt is <b>so</b>."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100])
def test_a_thought_is_folded_away_wherever_the_stream_is_cut(size: int) -> None:
    pieces = [WHOLE[at : at + size] for at in range(0, len(WHOLE), size)]
    answer, thinking, kept, folded = fold(*pieces)
    assert answer == kept == "It is <b>so</b>."
    assert thinking == folded == "Is it?\nYes."


def test_an_answer_without_thought_is_untouched() -> None:
    assert fold("a < b", " and <", "thin") == ("a < b and <thin", "", "a < b and <thin", "")


def test_a_thought_without_end_is_no_answer() -> None:
    assert fold("<think>hm", "m")[2:] == ("", "hmm")


def test_two_thoughts() -> None:
    assert fold("<think>a</think>b<think>c</think>d")[2:] == ("bd", "ac")


def test_a_template_may_have_opened_the_thought() -> None:
    shown, _, answer, thinking = fold("Let me ", "see.</th", "ink>\nFour.")
    assert (answer, thinking) == ("Four.", "Let me see.")
    assert shown.endswith("Four.")


def test_a_later_closing_tag_is_text() -> None:
    assert fold("<think>a</think>b</think>c")[2] == "b</think>c"


def test_blanks_around_a_thought_are_left_out() -> None:
    assert fold("<think>", "\n", " a\n", "\nb", " \n", "</think>", "\n", "\n", "c\n") == (
        "c\n",
        "a\n\nb",
        "c\n",
        "a\n\nb",
    )


PARTS = st.sampled_from(["<think>", "</think>", "<", "</", "think>", "\n", " ", "a"])


@given(st.lists(PARTS, max_size=12).map("".join), st.data())
def test_it_does_not_matter_where_the_answer_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert fold(*pieces) == fold(*text) == fold(text)
