import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.inference.text import StopMatcher, TextDecoder


@given(st.text(), st.data())
def test_any_cut_of_the_bytes_gives_the_same_text(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)))))
    decoder = TextDecoder()
    pieces = [decoder.feed(raw[a:b]) for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece or "\ufffd" in text for piece in pieces)


def test_invalid_bytes_become_replacement_characters_and_decoding_goes_on() -> None:
    decoder = TextDecoder()
    assert decoder.feed(b"a\xffb") == "a\ufffdb"
    assert decoder.feed(b"\xf0\x9f") == ""
    assert decoder.feed(b"c") == "\ufffdc"


LETTERS = st.text("ab", max_size=30)


@given(LETTERS, st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.data())
def test_the_text_ends_where_a_stop_string_first_completes(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    matcher, shown, met = StopMatcher(stops), "", False
    for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True):
        new, met = matcher.feed(text[a:b])
        shown += new
        assert text.startswith(shown)
        if met:
            break
    else:
        shown += matcher.flush()
    assert met == any(stop in text for stop in stops)
    assert not any(stop in shown for stop in stops)
    if not met:
        assert shown == text


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["He", "llo", " EN", "D more"], [("He", False), ("llo", False), (" ", False), ("", True)]),
        (["a E", "N", "E", "ND"], [("a ", False), ("", False), ("EN", False), ("", True)]),
        (["EN", "ough"], [("", False), ("ENough", False)]),
        (["xENDy"], [("x", True)]),
    ],
)
def test_a_beginning_of_a_stop_string_is_held_back(
    pieces: list[str], expected: list[tuple[str, bool]]
) -> None:
    matcher = StopMatcher(["END"])
    assert [matcher.feed(piece) for piece in pieces] == expected
