"""Bytes of a file to text."""

import codecs

_BINARY_SNIFF_BYTES = 8_000
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    # UTF-32's mark begins with UTF-16's.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotText(Exception):
    """The bytes are no text; the message is a sentence."""


def decode(data: bytes) -> tuple[str, str | None]:
    """(text, what is wrong with it). UTF-8, or what a byte order mark says; bytes that are no text become U+FFFD.

    Raises `NotText` for a file that is binary, as git guesses it: a zero byte near its beginning.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], name)
    if b"\0" in data[:_BINARY_SNIFF_BYTES]:
        raise NotText("It is no text: it contains zero bytes. (UTF-16 text needs a byte order mark.)")
    return _decode(data, "utf-8")


def _decode(data: bytes, encoding: str) -> tuple[str, str | None]:
    try:
        return data.decode(encoding), None
    except UnicodeDecodeError as error:
        flaw = (
            f"It is not {encoding.upper()} text (byte {error.start + 1} is 0x{data[error.start]:02X}); what could not be "
            "read was replaced by \ufffd. Convert it to UTF-8 and import it again."
        )
        return data.decode(encoding, errors="replace"), flaw
