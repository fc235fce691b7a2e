"""How the makers of a model recommend to draw its tokens. Some models, above all those that think first, go round in circles
when the likeliest token is always taken."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from data.models.gguf import GgufHeader
from domain.entities.llm import Sampling

_GGUF_KEYS = {"temperature": "temp", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p"}


def of_config(config: Mapping[str, Any]) -> Sampling | None:
    """From the object in `generation_config.json`, which says nothing of drawing unless `do_sample` is true."""
    return _checked(config) if config.get("do_sample") is True else None


def of_gguf(header: GgufHeader) -> Sampling | None:
    """From the keys `general.sampling.*`, as llama.cpp reads them."""
    return _checked(
        {name: header.metadata.get(f"general.sampling.{key}") for name, key in _GGUF_KEYS.items()}
    )


def _checked(found: Mapping[str, Any]) -> Sampling | None:
    """None without a temperature, and where there is no sense in it: the model runs all the same."""
    said = {name: found[name] for name in _GGUF_KEYS if found.get(name) is not None}
    try:
        return Sampling(**said) if "temperature" in said else None
    except ValidationError:
        return None
