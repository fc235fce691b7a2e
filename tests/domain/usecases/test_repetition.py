import pytest

from domain.usecases.repetition import TIMES, goes_in_circles

SENTENCE = "The old mill stands by the river, and nobody knows why. "


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * TIMES,
        "Something else first.\n\n" + SENTENCE * TIMES,
        (SENTENCE + "The willows lean over it. ") * TIMES,
        "and the river and the river " + "and the river " * 20,
        "very " * 40,
        "- Water it.\n- Feed it.\n- Wait a day.\n" * TIMES,
        "```\nx = 1\n```\n" + SENTENCE * TIMES,
    ],
)
def test_the_same_words_again_and_again_are_a_circle(text: str) -> None:
    assert goes_in_circles(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        SENTENCE * (TIMES - 1),
        SENTENCE * TIMES + "But then something else came.",
        "ha " * 8,
        "| --- " * 80,
        "0, " * 100,
        "".join(f"{number}. Water the {number}th bed in the evening.\n" for number in range(40)),
        "```html\n" + "<tr><td>name</td><td>value</td></tr>\n" * 20,
    ],
)
def test_what_says_something_new_is_none_and_neither_is_a_refrain_a_table_or_code(text: str) -> None:
    assert not goes_in_circles(text)
