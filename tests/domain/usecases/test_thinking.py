import pytest

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
    assert answer.lstrip("\n") == kept.lstrip("\n") == "It is <b>so</b>."
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
