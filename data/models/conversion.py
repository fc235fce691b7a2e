"""GGUF file to MLX folder, keeping the quantised weights as they are.

MLX reads Q4_0, Q4_1 and Q8_0 tensors straight into its own groups of 32. What is left is to rename tensors, to undo
the row order that llama.cpp gives q and k for its interleaved rotary embedding, and to rebuild the tokenizer.
Run as a program (`python -m data.models.conversion FILE FOLDER`) it can be killed at any moment, and its memory
goes back to the system when it ends.
"""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from data.models.files import publish_folder
from data.models.gguf import read_header
from data.models.gguf_tokenizer import build_tokenizer, tokenizer_config
from domain.errors import ModelDamaged

_GROUP_SIZE = 32
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert_gguf(gguf: Path, target: Path, *, bits: Literal[4, 8] | None = None) -> None:
    """Writes an MLX folder that `mlx_lm.load` accepts, complete or not at all.

    `bits` re-quantises every matrix (groups of 32); by default each keeps the width that the file gives it.
    Floats are fp16 where MLX has a GPU and fp32 on a CPU, where half precision is emulated and a hundred times slower.
    Raises `ModelDamaged` for a broken file or one whose architecture is not llama's.
    """
    header = read_header(gguf)
    if header.architecture != "llama":
        raise ModelDamaged(
            f"{gguf} is of the architecture {header.architecture!r}; only llama's can be converted. "
            "Use the GGUF file itself with llama.cpp, or pull an MLX repository of the model."
        )
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        config = _config(header.metadata, tied="output.weight" not in header.tensors)
        config |= _write_weights(gguf, partial / "model.safetensors", config, bits)
        _write_json(partial / "config.json", config)
        build_tokenizer(header.metadata).save(str(partial / "tokenizer.json"))
        _write_json(partial / "tokenizer_config.json", tokenizer_config(header.metadata))
        publish_folder(partial, target)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelDamaged(f"{gguf} cannot be converted: its metadata lack or garble {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_weights(gguf: Path, path: Path, config: Mapping[str, Any], bits: int | None) -> dict[str, Any]:
    """Returns the config's `quantization` entry, if anything is quantised."""
    import mlx.core as mx

    on_gpu = mx.default_device().type == mx.DeviceType.gpu
    dtype = mx.float16 if on_gpu else mx.float32
    # Loading is a matter of copying; the CPU's stream does it everywhere, whatever the GPU is busy with.
    with mx.stream(mx.cpu):
        loaded: Any = mx.load(str(gguf))
        tensors = {_rename(name): value for name, value in loaded.items()}
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
        for name, value in tensors.items():
            projection = name.split(".")[-2]
            if projection in heads:
                tensors[name] = _restore_row_order(value, heads[projection])
        if bits is not None:
            tensors = _requantise(tensors, bits)
        for name, value in tensors.items():
            if mx.issubdtype(value.dtype, mx.floating):
                tensors[name] = value.astype(dtype)
        mx.save_safetensors(str(path), tensors, metadata={"format": "mlx"})
        return _quantization(tensors)


def _rename(name: str) -> str:
    """`blk.3.attn_q.weight` to `model.layers.3.self_attn.q_proj.weight`."""
    parts = name.split(".")
    if parts[0] == "blk":
        return ".".join(["model.layers", parts[1], _LAYER[parts[2]], parts[3]])
    return f"{_TOP[parts[0]]}.{parts[1]}"


def _restore_row_order(value: Any, heads: int) -> Any:
    """(heads x dim, …) with each head's rows interleaved (0, d/2, 1, d/2+1, …) to rows in order; the inverse of
    `permute` in llama.cpp's convert_hf_to_gguf.py. Holds for weights, scales and biases alike: all are by row."""
    rows, *rest = value.shape
    return value.reshape(heads, rows // heads // 2, 2, *rest).swapaxes(1, 2).reshape(value.shape)


def _requantise(tensors: Mapping[str, Any], bits: int) -> dict[str, Any]:
    import mlx.core as mx

    result: dict[str, Any] = {}
    for name, value in tensors.items():
        module, _, part = name.rpartition(".")
        if part in ("scales", "biases"):
            continue
        if f"{module}.scales" in tensors:
            scales, biases = (tensors[f"{module}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            full = mx.dequantize(value, scales, biases, _GROUP_SIZE, _bits(value, scales))
            quantised = mx.quantize(full, _GROUP_SIZE, bits)
            result.update(zip((name, f"{module}.scales", f"{module}.biases"), quantised, strict=True))
        else:
            result[name] = value
    return result


def _bits(weight: Any, scales: Any) -> int:
    """Bits per weight, from the packed width: (rows, columns x bits / 32) against (rows, columns / group)."""
    return int(weight.shape[-1] * 32 // (scales.shape[-1] * _GROUP_SIZE))


def _quantization(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """One entry for most modules, and one each for those of another width."""
    widths = {
        name.removesuffix(".scales"): _bits(tensors[name.removesuffix("scales") + "weight"], value)
        for name, value in tensors.items()
        if name.endswith(".scales")
    }
    if not widths:
        return {}
    counts = list(widths.values())
    usual = max(set(counts), key=counts.count)
    entry: dict[str, Any] = {"group_size": _GROUP_SIZE, "bits": usual}
    for module, width in sorted(widths.items()):
        if width != usual:
            entry[module] = {"group_size": _GROUP_SIZE, "bits": width}
    return {"quantization": entry}


def _config(meta: Mapping[str, Any], *, tied: bool) -> dict[str, Any]:
    heads = meta["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": meta.get("llama.attention.head_count_kv", heads),
        "rms_norm_eps": meta["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": meta.get("llama.rope.freq_base", 10_000.0),
        "rope_traditional": False,
        "max_position_embeddings": meta["llama.context_length"],
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": tied,
    }


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    convert_gguf(Path(sys.argv[1]), Path(sys.argv[2]))
