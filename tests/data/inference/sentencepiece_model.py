"""A model with a SentencePiece vocabulary, as Llama 2, Mistral and their heirs have one; its weights are noise.

It writes every token, those for single bytes too, which is what these vocabularies make hard.
"""

import json
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

CONTEXT, WIDTH, HEADS, LAYERS, HIDDEN = 512, 64, 4, 2, 128
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}\n{% endfor %}[assistant]"
_WORDS = ["▁", "▁the", "▁a", "▁of", "é", "日", "本", "😀", "▁日本", "ing", "▁in", "\n"]
_LETTERS = [chr(code) for code in range(0x21, 0x7F)]


def write_model(path: Path) -> None:
    """A GGUF file of half a megabyte, always the same."""
    chance = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    size = _write_vocabulary(writer)

    def noise(name: str, *shape: int, scale: float = 0.3) -> None:
        writer.add_tensor(f"{name}.weight", (chance.standard_normal(shape) * scale).astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))

    noise("token_embd", size, WIDTH, scale=1.0)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        ones(f"{block}.attn_norm")
        ones(f"{block}.ffn_norm")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            noise(f"{block}.{part}", WIDTH, WIDTH)
        noise(f"{block}.ffn_gate", HIDDEN, WIDTH)
        noise(f"{block}.ffn_up", HIDDEN, WIDTH)
        noise(f"{block}.ffn_down", WIDTH, HIDDEN)
    ones("output_norm")
    noise("output", size, WIDTH, scale=0.5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_vocabulary(writer: gguf.GGUFWriter) -> int:
    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    tokens += [(word, kinds.NORMAL) for word in (*_WORDS, *_LETTERS)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_token_scores([-float(at) for at in range(len(tokens))])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    writer.add_chat_template(TEMPLATE)
    return len(tokens)


def write_tokenizer(folder: Path, prepend_scheme: str) -> None:
    """The same vocabulary as an MLX folder has it."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *_WORDS, *_LETTERS]
    scored = [(piece, -float(at)) for at, piece in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=prepend_scheme)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
