"""A tokenizer.json from the metadata of a GGUF file."""

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

_CONTROL = 3


def build_tokenizer(meta: Mapping[str, Any]) -> Tokenizer:
    """Byte-level BPE with digits split one by one, as SmolLM's; control tokens (type 3) become special tokens.

    Raises `ValueError` for any other kind of tokenizer.
    """
    kind, pre = meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"]
    if kind != "gpt2" or pre != "smollm":
        raise ValueError(f"the tokenizer {kind}/{pre}: only gpt2/smollm is known")
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [
        (left, right) for left, _, right in (line.partition(" ") for line in meta["tokenizer.ggml.merges"])
    ]
    tokenizer = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, token_type in zip(tokens, types, strict=True)
            if token_type == _CONTROL
        ]
    )
    return tokenizer


def tokenizer_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What transformers wants to know besides: special tokens by name, context length, chat template."""
    tokens = meta["tokenizer.ggml.tokens"]
    named = {
        f"{name}_token": tokens[meta[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown"))
        if f"tokenizer.ggml.{key}_token_id" in meta
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": meta["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "chat_template": meta["tokenizer.chat_template"],
        **named,
    }
