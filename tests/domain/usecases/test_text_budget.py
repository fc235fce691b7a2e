import pytest

from domain.usecases.text_budget import cut_end, cut_middle, text_tokens

TEXTS = ["", "short", "word " * 1000, "line\n" * 500, "x" * 5000, "日本語" * 800, "🙂 and words " * 300]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("budget", [30, 100, 999])
def test_a_cut_text_fits_and_an_uncut_one_is_whole(text: str, budget: int) -> None:
    for cut in (cut_end(text, budget), cut_middle(text, budget)):
        assert text_tokens(cut) <= budget
        assert (cut == text) == (text_tokens(text) <= budget) or abs(text_tokens(text) - budget) <= 1


def test_head_and_tail_stay_and_what_is_left_out_is_told() -> None:
    text = "Beginning. " + "middle " * 5000 + "End."
    cut = cut_middle(text, 200)
    assert cut.startswith("Beginning.")
    assert cut.endswith("End.")
    head, tail = cut.split("\n\n[… the middle is left out: ")
    left_out = int(tail.split()[0])
    assert len(head) + left_out + len(tail.split("…]\n\n")[1]) == len(text)


def test_cuts_are_between_words() -> None:
    assert cut_end("one two three four", 5) == "one two three"
