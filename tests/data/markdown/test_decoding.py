import codecs

import pytest

from data.markdown.decoding import NotText, decode


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("é日👩‍🚀".encode(), "é日👩‍🚀"),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        ("é日".encode("utf-16"), "é日"),
        (codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le"), "é\n"),
        (codecs.BOM_UTF16_BE + "é\n".encode("utf-16-be"), "é\n"),
        ("é日".encode("utf-32"), "é日"),
    ],
)
def test_text(data: bytes, text: str) -> None:
    assert decode(data) == (text, None)


@pytest.mark.parametrize(
    ("data", "text", "named"),
    [
        (b"caf\xe9", "caf\ufffd", "byte 4 is 0xE9"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", "UTF-8"),
        (codecs.BOM_UTF16_LE + b"a\0\x00\xd8", "a\ufffd", "UTF-16-LE"),
        (codecs.BOM_UTF16_LE + b"a\0b", "a\ufffd", "UTF-16-LE"),
    ],
)
def test_what_is_no_text_is_replaced_and_named(data: bytes, text: str, named: str) -> None:
    decoded, flaw = decode(data)
    assert decoded == text
    assert flaw is not None
    assert named in flaw


def test_binary_files_are_refused() -> None:
    for data in (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "no mark".encode("utf-16-le")):
        with pytest.raises(NotText, match="zero bytes"):
            decode(data)
    assert decode(b"a" * 10_000 + b"\0")[0].endswith("\0")
