import contextlib
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.models.gguf import read_header
from domain.errors import ModelDamaged

Build = Callable[..., bytes]


def test_reads_metadata_and_tensor_names(tmp_path: Path, tiny_gguf: bytes) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_gguf)

    header = read_header(path)

    assert header.architecture == "tiny"
    assert header.context_tokens == 128
    assert header.chat_template == "{{ messages }}"
    assert header.metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    assert header.tensors == ("token_embd.weight",)


def test_a_file_cut_anywhere_is_damaged(tmp_path: Path, tiny_gguf: bytes) -> None:
    path = tmp_path / "cut.gguf"
    header_bytes = len(tiny_gguf) - 4096 * 4
    for size in [*range(0, header_bytes, 7), header_bytes, len(tiny_gguf) - 1]:
        path.write_bytes(tiny_gguf[:size])
        with pytest.raises(ModelDamaged):
            read_header(path)


def test_truncated_data_are_named_with_both_sizes(tmp_path: Path, tiny_gguf: bytes) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny_gguf[:-100])

    with pytest.raises(
        ModelDamaged, match=rf"{len(tiny_gguf) - 100} bytes.*end at byte {len(tiny_gguf)}.*truncated"
    ):
        read_header(path)


@pytest.mark.parametrize(
    ("at", "replacement", "complaint"),
    [
        (0, b"GGML", "letters GGUF"),
        (4, struct.pack("<I", 99), "version 99"),
        (8, struct.pack("<Q", 2**60), "tensors"),
        (16, struct.pack("<Q", 2**60), "metadata entries"),
        (24, struct.pack("<Q", 2**60), "bytes in a string"),
    ],
)
def test_absurd_claims_are_not_believed(
    tmp_path: Path, tiny_gguf: bytes, at: int, replacement: bytes, complaint: str
) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(tiny_gguf[:at] + replacement + tiny_gguf[at + len(replacement) :])

    with pytest.raises(ModelDamaged, match=complaint):
        read_header(path)


def test_random_damage_is_reported_as_damage_or_goes_unseen(tmp_path: Path, tiny_gguf: bytes) -> None:
    draw = random.Random(7)
    path = tmp_path / "fuzzed.gguf"
    header_bytes = len(tiny_gguf) - 4096 * 4
    for _ in range(400):
        garbled = bytearray(tiny_gguf)
        for _ in range(draw.randint(1, 8)):
            garbled[draw.randrange(header_bytes)] = draw.randrange(256)
        path.write_bytes(garbled)
        with contextlib.suppress(ModelDamaged):
            read_header(path)


@pytest.mark.parametrize("alignment", [0, 2**21])
def test_an_impossible_alignment_is_refused(
    tmp_path: Path, gguf_of: Build, tiny_metadata: dict[str, Any], alignment: int
) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(gguf_of({**tiny_metadata, "general.alignment": alignment}))

    with pytest.raises(ModelDamaged, match="alignment"):
        read_header(path)
