import pytest

from presentation.cli.terminal import printable, size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/red] 🌱 नमस्ते", "plain [red]text[/red] 🌱 नमस्ते"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x1b]0;title\x07", "]0;title"),
        ("a\rb\x08c\x7f\x9b2J\ud800", "abc2J"),
    ],
)
def test_control_characters_never_reach_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1500, "2 kB"), (108_900_000, "108.9 MB"), (2.5e12, "2.5 TB")]
)
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text
