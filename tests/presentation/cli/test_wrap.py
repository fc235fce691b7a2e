"""The stream as a terminal shows it: characters, backspace, erase to the end of the line, line feed."""

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presentation.cli.wrap import WordWrap, write_beside


def shown(pieces: Sequence[str], columns: int) -> list[str]:
    """The lines on a screen of single-width characters."""
    emitted: list[str] = []
    wrap = WordWrap(emitted.append, lambda: columns)
    for piece in pieces:
        wrap.write(piece)
    lines = [""]
    at = 0
    stream = "".join(emitted)
    while stream:
        if stream.startswith("\x1b[K"):
            lines[-1] = lines[-1][:at]
            stream = stream[3:]
            continue
        char, stream = stream[0], stream[1:]
        if char == "\n" or at == columns:
            lines.append("")
            at = 0
        if char == "\b":
            at -= 1
        elif char != "\n":
            lines[-1] = lines[-1][:at] + char
            at += 1
    return lines


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (("one two", " thr", "ee four"), ["one two ", "three four"]),
        (("one two th", "ree"), ["one two ", "three"]),
        (("one\ntwo",), ["one", "two"]),
        (("abcdefghijkl mn",), ["abcdefghijk", "l mn"]),
        (("one two thr\x1b[2Jee",), ["one two ", "thr[2Jee"]),
    ],
)
def test_words_are_not_cut_at_the_edge(pieces: tuple[str, ...], lines: list[str]) -> None:
    assert shown(pieces, 11) == lines


def test_wide_characters_count_twice() -> None:
    emitted: list[str] = []
    WordWrap(emitted.append, lambda: 11).write("日本 日本 日本")
    assert "".join(emitted) == "日本 日本 \x1b[K\n日本"


@given(st.text("ab \n", max_size=80), st.integers(0, 7), st.integers(2, 30))
def test_nothing_is_lost_or_cut_however_the_stream_is_split(text: str, split: int, columns: int) -> None:
    pieces = [text[at : at + split + 1] for at in range(0, len(text), split + 1)]
    lines = shown(pieces, columns)
    assert all(len(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    if all(len(word) < columns for word in text.split()):
        assert [word for line in lines for word in line.split()] == text.split()


LONG = "words that go on " * 12


@pytest.mark.parametrize(("label", "indent"), [("0123456789ab  ", 14), ("", 0), ("x" * 50 + " ", 4)])
def test_a_text_stays_beside_its_label_on_a_terminal(
    label: str, indent: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_beside(label, LONG.strip())
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith(label)
    assert all(len(line) <= 59 for line in (first.rstrip(), *more)), "the last column stays free"
    assert all(line.startswith(" " * indent) and line[indent] != " " for line in more)
    assert " ".join([first.removeprefix(label), *(line.strip() for line in more)]).split() == LONG.split()


def test_what_is_piped_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_beside("id  ", LONG)
    assert capsys.readouterr().out == f"id  {LONG}\n"
