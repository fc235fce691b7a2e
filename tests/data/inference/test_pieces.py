from data.inference.pieces import byte_level_piece, sentencepiece_piece


def test_byte_level_tokens() -> None:
    assert byte_level_piece("Ġna") == b" na"
    assert byte_level_piece("Ã¯ve") == "ïve".encode()
    assert byte_level_piece("ðŁ") == b"\xf0\x9f"
    assert byte_level_piece("Ċ") == b"\n"
    assert byte_level_piece("日") == "日".encode()


def test_sentencepiece_tokens() -> None:
    assert sentencepiece_piece("▁na") == b" na"
    assert sentencepiece_piece("<0x0A>") == b"\n"
    assert sentencepiece_piece("<0xF0>") == b"\xf0"
    assert sentencepiece_piece("<0x>") == b"<0x>"
