import asyncio

import pytest

from domain.entities.models import PullProgress
from domain.errors import UnknownModel
from domain.usecases.models import EnsureModelUseCase, ListModelsUseCase, ProposeModelsUseCase
from tests.fakes import ENTRY, FixedHealth, FixedHub, MemoryStore


def ignore(step: PullProgress) -> None:
    pass


def test_what_is_installed_is_not_offered() -> None:
    assert [entry.name for entry in ListModelsUseCase(MemoryStore())().available] == ["tiny"]
    assert ListModelsUseCase(MemoryStore("tiny"))().available == ()


def test_the_default_is_fetched_once() -> None:
    store = MemoryStore()
    for _ in range(2):
        assert asyncio.run(EnsureModelUseCase(store)(None, ignore)).name == "tiny"
    assert store.pulled == ["tiny"]


def test_another_model_is_never_fetched_unasked() -> None:
    store = MemoryStore("other")
    store.default = "other"
    with pytest.raises(UnknownModel, match="uniun models pull tiny"):
        asyncio.run(EnsureModelUseCase(store)("tiny", ignore))
    with pytest.raises(UnknownModel, match="There is no model nonsense"):
        asyncio.run(EnsureModelUseCase(store)("nonsense", ignore))
    assert store.pulled == []


def test_larger_models_are_proposed_by_memory_where_the_hub_answers() -> None:
    store = MemoryStore("tiny", "have")
    for name, memory_gb in (
        ("have", 2),
        ("small", 2),
        ("medium", 4),
        ("large", 8),
        ("huge", 40),
        ("good", 3),
    ):
        store.offered.append(ENTRY.model_copy(update={"name": name, "memory_bytes": memory_gb * 10**9}))
    # 16 GB of memory: half of it is for the model.
    propose = ProposeModelsUseCase(store, FixedHub(there=True), FixedHealth())
    assert [entry.name for entry in asyncio.run(propose())] == ["large", "medium", "good"]
    assert asyncio.run(ProposeModelsUseCase(store, FixedHub(), FixedHealth())()) == ()
