"""Text as everything compares it that looks for words or names."""

import re
import unicodedata

# Accents of the Latin, Greek and Cyrillic scripts; points of the Hebrew and the Arabic. Others change the letter.
_DROPPED = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]")


def fold(text: str) -> str:
    """Without case, without accents, with compatible characters made equal."""
    if text.isascii():
        return text.lower()
    # Twice, because taking apart brings capitals back: № becomes No.
    decomposed = unicodedata.normalize("NFKD", text.casefold()).casefold()
    return unicodedata.normalize("NFC", _DROPPED.sub("", decomposed))
