"""One engine of each kind for the whole session; each test finds model `one` loaded."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from domain.entities.models import InstalledModel
from tests.data.inference.engines import Rig, make_rig

REAL = [pytest.param(kind, marks=pytest.mark.model) for kind in ("llama.cpp", "mlx")]


@pytest.fixture(scope="session")
def rigs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Rig]]:
    made: dict[str, Rig] = {}
    damaged: Path = tmp_path_factory.mktemp("damaged") / "model.gguf"
    damaged.write_bytes(b"GGUF" + bytes(100))
    (damaged.parent / "config.json").write_text('{"model_type": "llama", "hidden_size": "wide"}')

    def get(kind: str) -> Rig:
        if kind not in made:
            model: InstalledModel | None = None if kind == "fake" else request.getfixturevalue("smollm2")
            # Short chunks, so that even a short prompt has several boundaries.
            made[kind] = make_rig(
                kind,
                model,
                damaged,
                chunk_s=0.02,
                interruptible_chunk_s=0.02,
                kv_budget_bytes=64 << 20,
                watchdog_s=60,
            )
        made[kind].load()
        return made[kind]

    yield get
    for rig in made.values():
        rig.close()


@pytest.fixture(params=["fake", *REAL])
def rig(request: pytest.FixtureRequest, rigs: Callable[[str], Rig]) -> Rig:
    return rigs(request.param)


@pytest.fixture(params=REAL)
def real(request: pytest.FixtureRequest, rigs: Callable[[str], Rig]) -> Rig:
    """For what the fake cannot have: weights, memory, grammars."""
    return rigs(request.param)
