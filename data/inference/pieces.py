"""From the way a tokenizer writes a token to the bytes of its text."""

import re

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_level_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for every byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(others)}


_ALPHABET = _byte_level_alphabet()


def byte_level_piece(text: str) -> bytes:
    """A token of a byte-level BPE vocabulary (GPT-2 and its many heirs)."""
    if all(char in _ALPHABET for char in text):
        return bytes(_ALPHABET[char] for char in text)
    return text.encode()


def sentencepiece_piece(text: str) -> bytes:
    """A token of a SentencePiece vocabulary: `▁` is a space and `<0x0A>` is one byte."""
    byte = _BYTE_TOKEN.fullmatch(text)
    return bytes([int(byte[1], 16)]) if byte else text.replace("\u2581", " ").encode()
