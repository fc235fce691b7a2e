import asyncio

import pytest

from domain.entities.models import PullProgress
from domain.errors import UnknownModel
from domain.usecases.models import EnsureModelUseCase, ListModelsUseCase
from tests.fakes import MemoryStore


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
