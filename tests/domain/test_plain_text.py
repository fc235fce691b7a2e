import pytest

from domain.plain_text import plain_text, shortened, without_title


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Ursula and [[Schnecken]]", "Ursula and Schnecken"),
        (
            "- [x] **Feed** it, *every* morning, see [[Rye bread|the rye]]",
            "Feed it, every morning, see the rye",
        ),
        ("> ## Deep\n> quoted", "Deep\nquoted"),
        ("![a pear](pears/one.png) and [the shop](https://example.org/a_b)", "a pear and the shop"),
        ("`code` and ~~gone~~ and __strong__", "code and gone and strong"),
        ("2 * 3 * 4, snake_case_name, #tag, 5 > 4", "2 * 3 * 4, snake_case_name, #tag, 5 > 4"),
        ("```python\nx = 1\n```", "\nx = 1\n"),
    ],
)
def test_marks_go_and_words_stay(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text


def test_a_heading_that_repeats_the_title_goes() -> None:
    assert without_title("\n# **Rye** bread\nBake it.", "Rye bread") == "Bake it."
    assert without_title("# Rye\nBake it.", "Rye bread") == "# Rye\nBake it."
    assert without_title("Rye bread\nBake it.", "Rye bread") == "Rye bread\nBake it."


@pytest.mark.parametrize(
    ("line", "most", "shown"),
    [
        ("short", 10, "short"),
        ("ten chars.", 10, "ten chars."),
        ("one two three", 10, "one two…"),
        ("one, two, three", 10, "one, two…"),
        ("a longestwordofall", 10, "a longest…"),
    ],
)
def test_a_line_is_cut_between_words(line: str, most: int, shown: str) -> None:
    assert shortened(line, most) == shown
    assert len(shown) <= most
