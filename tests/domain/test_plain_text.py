import pytest

from domain.plain_text import plain_text, said_text, shortened, without_title


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
        ("Water ![[h4.png]] and 1. [x] not a task", "Water  and 1. [x] not a task"),
        ("`code` and ~~gone~~ and __strong__", "code and gone and strong"),
        ("2 * 3 * 4, snake_case_name, #tag, 5 > 4", "2 * 3 * 4, snake_case_name, #tag, 5 > 4"),
        ("```python\nx = 1\n```", "\nx = 1\n"),
    ],
)
def test_marks_go_and_words_stay(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        ("A map: ![[h4.png]] and ![[plan.pdf|300]].", "A map:  and ."),
        ("![the old map](attachments/map.png), ![map.png](map.png)", "the old map, "),
        ("- [x] done\n  * [ ] to do\n> 1. [X] quoted", "- done\n  * to do\n> 1. quoted"),
        ("![[Rye bread]], [[h4.png]], a[x] and [x](y.md)", "![[Rye bread]], [[h4.png]], a[x] and [x](y.md)"),
    ],
)
def test_names_of_files_and_boxes_of_tasks_say_nothing_to_a_model(markdown: str, said: str) -> None:
    assert said_text(markdown) == said


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
