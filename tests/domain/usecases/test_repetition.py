import pytest

from domain.usecases.repetition import TIMES, goes_in_circles

SENTENCE = "The old mill stands by the river, and nobody knows why. "


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * 20,
        "Something else first.\n\n" + SENTENCE * 20,
        (SENTENCE * 3 + "The willows lean over it. ") * TIMES,
        "and the river and the river " + "and the river " * 80,
        "very " * 201,
        "- Water it.\n- Feed it.\n- Wait a day.\n" * 30,
        "```\nx = 1\n```\n" + SENTENCE * 20,
    ],
)
def test_the_same_words_again_and_again_are_a_circle(text: str) -> None:
    assert goes_in_circles(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        (SENTENCE * 3 + "The willows lean over it. ") * (TIMES - 1),
        SENTENCE * 17,
        "| Rice and beans | 100 kcal |\n" * 20,
        "print('hello')\n" * 40,
        "Row, row, row your boat, gently down the stream.\n" * 4,
        SENTENCE * 20 + "But then something else came.",
        "ha " * 8,
        "| --- " * 80,
        "0, " * 100,
        "".join(f"{number}. Water the {number}th bed in the evening.\n" for number in range(40)),
        "```html\n" + "<tr><td>name</td><td>value</td></tr>\n" * 50,
    ],
)
def test_what_says_something_new_is_none_and_neither_is_a_refrain_a_table_or_code(text: str) -> None:
    assert not goes_in_circles(text)
