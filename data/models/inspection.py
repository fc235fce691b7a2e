"""Is this a model that an engine can load? Answers from headers and small files, without the model libraries."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.models import recommended
from data.models.gguf import MAGIC, read_header
from domain.entities.llm import Sampling
from domain.errors import ModelDamaged

# What mlx-lm reads. No Python: code that comes with a model is never fetched, let alone run.
MLX_FILES = ("*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt")
MAX_MLX_FILES = 1000
_MAX_JSON_BYTES = 64 << 20
_MAX_SAFETENSORS_HEADER_BYTES = 100 << 20
_MAX_CONTEXT_TOKENS = 1 << 31


@dataclass(frozen=True)
class Inspection:
    """What a usable model is: `files` lie below `folder`, by name."""

    folder: Path
    files: tuple[str, ...]
    context_tokens: int | None
    sampling: Sampling | None


def inspect_gguf(path: Path) -> Inspection:
    """Raises `ModelDamaged` saying what is wrong with the file or what it lacks."""
    header = read_header(path)
    if header.metadata.get("tokenizer.ggml.tokens") is None:
        raise ModelDamaged(
            f"{path} holds no tokenizer: it is not a whole language model. Choose another file."
        )
    if header.chat_template is None:
        raise ModelDamaged(
            f"{path} has no chat template, so it is not an instruction-tuned model. Choose an instruct version of it."
        )
    return Inspection(
        folder=path.parent,
        files=(path.name,),
        context_tokens=header.context_tokens,
        sampling=recommended.of_gguf(header),
    )


def inspect_mlx(folder: Path) -> Inspection:
    """Raises `ModelDamaged` naming everything that the folder lacks, or the file that is broken."""
    weights = sorted(folder.glob("model*.safetensors"))
    templates = [
        folder / name for name in ("chat_template.jinja", "chat_template.json") if (folder / name).is_file()
    ]
    tokenizer_config = folder / "tokenizer_config.json"
    settings = read_json(tokenizer_config) if tokenizer_config.is_file() else {}
    lacks = [
        what
        for what, there in (
            ("config.json", (folder / "config.json").is_file()),
            ("weights (model*.safetensors)", bool(weights)),
            ("a tokenizer (tokenizer.json)", (folder / "tokenizer.json").is_file()),
            ("a chat template", bool(templates) or bool(settings.get("chat_template"))),
        )
        if not there
    ]
    if lacks:
        raise ModelDamaged(
            f"{folder} is not a complete MLX model: it lacks {', '.join(lacks)}. "
            "Point to the folder of an instruction-tuned model, converted for MLX."
        )
    _check_shards(folder, {path.name for path in weights})
    for path in weights:
        check_safetensors(path)
    read_json(folder / "tokenizer.json")
    files = tuple(
        sorted({path.name for pattern in MLX_FILES for path in folder.glob(pattern) if path.is_file()})
    )
    if len(files) > MAX_MLX_FILES:
        raise ModelDamaged(
            f"{folder} holds {len(files)} model files, more than the {MAX_MLX_FILES} that are believed."
        )
    return Inspection(
        folder=folder,
        files=files,
        context_tokens=_context_tokens(read_json(folder / "config.json")),
        sampling=recommended.of_config(_generation_config(folder)),
    )


def begins_rightly(path: Path) -> bool:
    """Looks at the first bytes only: enough to see an emptied or overwritten file."""
    if path.suffix == ".gguf":
        with path.open("rb") as file:
            return file.read(4) == MAGIC
    return path.suffix != ".safetensors" or _header_bytes(path) is not None


REPAIR = "Its files must be fetched again."


def check_safetensors(path: Path) -> None:
    """Whole header against the file's size. Raises `ModelDamaged` if it is broken or the data are cut off."""
    length = _header_bytes(path)
    if length is None:
        raise ModelDamaged(f"{path} does not begin as a safetensors file does. {REPAIR}")
    with path.open("rb") as file:
        file.seek(8)
        try:
            header = json.loads(file.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            needed = 8 + length + max(ends)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise ModelDamaged(f"{path} has a broken safetensors header ({error}). {REPAIR}") from error
    if path.stat().st_size != needed:
        raise ModelDamaged(
            f"{path} has {path.stat().st_size} bytes where its header says {needed}: it is truncated. {REPAIR}"
        )


def _header_bytes(path: Path) -> int | None:
    """Length of the safetensors header, if there is a sane one."""
    with path.open("rb") as file:
        start = file.read(9)
    length = int(struct.unpack("<Q", start[:8])[0]) if len(start) == 9 else 0
    sane = 2 <= length <= min(_MAX_SAFETENSORS_HEADER_BYTES, path.stat().st_size - 8) and start[8:] == b"{"
    return length if sane else None


def _check_shards(folder: Path, present: set[str]) -> None:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return
    shards = read_json(index).get("weight_map", {})
    missing = set(map(str, shards.values())) - present if isinstance(shards, dict) else set()
    if missing:
        raise ModelDamaged(
            f"{folder} is not a complete MLX model: it lacks {', '.join(sorted(missing)[:5])}. {REPAIR}"
        )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of sane size. Raises `ModelDamaged`."""
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            raise ValueError("it is far too large")
        value = json.loads(path.read_bytes())
        if not isinstance(value, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise ModelDamaged(f"{path} cannot be read: {error}. {REPAIR}") from error
    return value


def _generation_config(folder: Path) -> dict[str, Any]:
    """Empty where there is none that can be read: a model runs without it."""
    try:
        return read_json(folder / "generation_config.json")
    except ModelDamaged:
        return {}


def _context_tokens(config: dict[str, Any]) -> int | None:
    nested = config.get("text_config")
    for place in (config, nested if isinstance(nested, dict) else {}):
        value = place.get("max_position_embeddings")
        if isinstance(value, int) and 0 < value < _MAX_CONTEXT_TOKENS:
            return value
    return None
