"""Words of a text."""

from data.repositories.full_text import MAX_WORD, words


def test_ascii_has_the_words_that_it_has_beside_another_script() -> None:
    every = "".join(map(chr, range(128)))
    for text in ("", every, f"{every} {every[::-1]}", "Rye_and-wheat, 3.5 kg (or so)", "x" * (MAX_WORD + 1)):
        assert [*words(text), "д"] == list(words(f"{text} Д"))
