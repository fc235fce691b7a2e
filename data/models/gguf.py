"""Reads and checks the header of a GGUF file without trusting it.

The format is described in ggml's docs/gguf.md: magic, version, counts, key-value pairs, tensor descriptions, then
the tensor data at an alignment. Every count and length is bounded before anything is allocated.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import ModelDamaged

MAGIC = b"GGUF"
_MAX_PAIRS = 100_000
_MAX_TENSORS = 100_000
_MAX_STRING_BYTES = 16 << 20
_MAX_ARRAY_ITEMS = 10_000_000
_MAX_HEADER_BYTES = 512 << 20
_MAX_DIMENSIONS = 4
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# ggml tensor type -> (elements per block, bytes per block), from ggml's table of type traits.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True)
class GgufHeader:
    """Metadata by key, and the tensor names."""

    metadata: Mapping[str, Any]
    tensors: tuple[str, ...]

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    @property
    def context_tokens(self) -> int | None:
        value = self.metadata.get(f"{self.architecture}.context_length")
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    @property
    def chat_template(self) -> str | None:
        value = self.metadata.get("tokenizer.chat_template")
        return value if isinstance(value, str) and value else None


class _Reader:
    """A cursor over the file that refuses to leave it."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._limit = min(len(data), _MAX_HEADER_BYTES)
        self.at = 0

    def take(self, size: int) -> bytes:
        if size > self._limit - self.at:
            raise ValueError("the header is cut off")
        start, self.at = self.at, self.at + size
        return self._data[start : self.at]

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def count(self, what: str, most: int) -> int:
        value: int = self.number("Q")
        if value > most:
            raise ValueError(f"it claims {value} {what}, more than the {most} that are believed")
        return value

    def string(self) -> str:
        return self.take(self.count("bytes in a string", _MAX_STRING_BYTES)).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            item = self.number("I")
            count = self.count("items in an array", _MAX_ARRAY_ITEMS)
            if item == _STRING:
                return [self.string() for _ in range(count)]
            code = self._scalar(item)
            return list(struct.unpack(f"<{count}{code}", self.take(count * struct.calcsize("<" + code))))
        return self.number(self._scalar(kind))

    @staticmethod
    def _scalar(kind: int) -> str:
        if kind not in _SCALARS:
            raise ValueError(f"it has a value of the unknown type {kind}")
        return _SCALARS[kind]


def read_header(path: Path) -> GgufHeader:
    """Raises `ModelDamaged` if `path` is no GGUF file, is of another version, or ends before its tensors do."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse(data)
    except (OSError, ValueError, struct.error) as error:
        raise ModelDamaged(
            f"{path} is not a usable GGUF file: {error}. Fetch the file again, or choose another one."
        ) from error


def _parse(data: mmap.mmap) -> GgufHeader:
    reader = _Reader(data)
    if reader.take(4) != MAGIC:
        raise ValueError("it does not begin with the letters GGUF")
    version = reader.number("I")
    if version not in (2, 3):
        raise ValueError(f"it is of version {version}, and versions 2 and 3 are known")
    tensor_count = reader.count("tensors", _MAX_TENSORS)
    pair_count = reader.count("metadata entries", _MAX_PAIRS)
    metadata: dict[str, Any] = {}
    for _ in range(pair_count):
        key = reader.string()
        metadata[key] = reader.value(reader.number("I"))
    names = []
    data_bytes = 0
    for _ in range(tensor_count):
        name, end = _tensor(reader)
        names.append(name)
        data_bytes = max(data_bytes, end)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 20:
        raise ValueError(f"its alignment is {alignment!r}")
    needed = -(-reader.at // alignment) * alignment + data_bytes
    if not names:
        raise ValueError("it holds no tensors")
    if len(data) < needed:
        raise ValueError(f"it has {len(data)} bytes, but its tensors end at byte {needed}: it is truncated")
    return GgufHeader(metadata, tuple(names))


def _tensor(reader: _Reader) -> tuple[str, int]:
    """Name, and where the tensor's data end, in bytes from the start of the data."""
    name = reader.string()
    dimensions = reader.number("I")
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise ValueError(f"tensor {name!r} has {dimensions} dimensions")
    elements = 1
    for _ in range(dimensions):
        elements *= reader.number("Q")
    kind, offset = reader.number("I"), reader.number("Q")
    # A type newer than this table is the engine's business; its size is then left unchecked.
    per_block, block_bytes = _BLOCKS.get(kind, (1, 0))
    return name, offset + -(-elements // per_block) * block_bytes
