import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.models.inspection import check_safetensors, inspect_gguf, inspect_mlx
from domain.entities.llm import Sampling
from domain.errors import ModelDamaged


def _safetensors(path: Path, floats: int = 4) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [floats], "data_offsets": [0, 4 * floats]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4 * floats)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The smallest MLX folder that passes."""
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 77}')
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    _safetensors(tmp_path / "model.safetensors")
    return tmp_path


def test_a_whole_folder_passes(folder: Path) -> None:
    (folder / "modeling.py").write_text("raise SystemExit")

    found = inspect_mlx(folder)

    assert found.context_tokens == 77
    assert found.files == ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("config.json", "config.json"),
        ("model.safetensors", "weights"),
        ("tokenizer.json", "a tokenizer"),
        ("tokenizer_config.json", "a chat template"),
    ],
)
def test_what_lacks_is_named(folder: Path, missing: str, said: str) -> None:
    (folder / missing).unlink()

    with pytest.raises(ModelDamaged, match=f"lacks .*{said}"):
        inspect_mlx(folder)


def test_everything_that_lacks_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"config\.json, weights .*, a tokenizer .*, a chat template"):
        inspect_mlx(tmp_path)


def test_a_template_in_a_file_of_its_own_counts(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    (folder / "chat_template.jinja").write_text("{{ messages }}")

    assert "chat_template.jinja" in inspect_mlx(folder).files


def test_the_context_of_a_nested_config_is_found(folder: Path) -> None:
    (folder / "config.json").write_text('{"text_config": {"max_position_embeddings": 99}}')

    assert inspect_mlx(folder).context_tokens == 99


@pytest.mark.parametrize(
    ("config", "sampling"),
    [
        (None, None),
        (b"{}", None),
        (b"no json", None),
        (b'{"do_sample": false, "temperature": 0.6}', None),
        (b'{"do_sample": true, "top_k": 20}', None),
        (b'{"do_sample": true, "temperature": -1}', None),
        (b'{"do_sample": true, "temperature": "hot"}', None),
        (b'{"do_sample": true, "temperature": 1e999}', None),
        (b'{"do_sample": true, "temperature": 0.6, "top_p": null}', Sampling(temperature=0.6)),
        (
            b'{"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "eos_token_id": 1}',
            Sampling(temperature=0.6, top_p=0.95, top_k=20),
        ),
    ],
)
def test_how_tokens_are_to_be_drawn_is_found_where_it_is_said_with_sense(
    folder: Path, config: bytes | None, sampling: Sampling | None
) -> None:
    if config is not None:
        (folder / "generation_config.json").write_bytes(config)
    assert inspect_mlx(folder).sampling == sampling


def test_a_gguf_file_says_how_tokens_are_to_be_drawn(
    tmp_path: Path, gguf_of: Callable[..., bytes], tiny_metadata: dict[str, Any]
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_of(tiny_metadata))
    assert inspect_gguf(path).sampling is None
    said = {"general.sampling.temp": 0.5, "general.sampling.top_k": 20}
    path.write_bytes(gguf_of(tiny_metadata | said))
    assert inspect_gguf(path).sampling == Sampling(temperature=0.5, top_k=20)


def test_a_missing_shard_is_named(folder: Path) -> None:
    shards = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(shards))

    with pytest.raises(ModelDamaged, match="model-00002-of-00002"):
        inspect_mlx(folder)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 20, struct.pack("<Q", 2**63) + b"{}", b"[1]", b"{" * 100_000]
)
def test_broken_json_and_headers_are_damage(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelDamaged, match="safetensors"):
        inspect_mlx(folder)

    _safetensors(folder / "model.safetensors")
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ModelDamaged, match="config"):
        inspect_mlx(folder)


@pytest.mark.parametrize(
    "header", [b'{"w": 1}', b'{"w": {"data_offsets": []}}', b'{"w": {"data_offsets": [0, "x"]}}', b"{}"]
)
def test_a_senseless_safetensors_header_is_damage(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)

    with pytest.raises(ModelDamaged):
        check_safetensors(path)


def test_truncated_weights_are_damage(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(ModelDamaged, match="truncated"):
        inspect_mlx(folder)


@pytest.mark.parametrize(
    ("key", "said"),
    [("tokenizer.ggml.tokens", "no tokenizer"), ("tokenizer.chat_template", "no chat template")],
)
def test_a_gguf_file_needs_tokenizer_and_template(
    tmp_path: Path, gguf_of: Callable[..., bytes], tiny_metadata: dict[str, Any], key: str, said: str
) -> None:
    del tiny_metadata[key]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_of(tiny_metadata))

    with pytest.raises(ModelDamaged, match=said):
        inspect_gguf(path)
