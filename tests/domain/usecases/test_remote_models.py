"""What is registered for a model on servers, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from data.clock import SystemClock
from data.models.store import FileModelStore
from domain.entities.llm import Sampling
from domain.entities.models import RemoteModel, ServerState
from domain.errors import InvalidRequest, UnknownModel
from domain.usecases.remote_models import AddedRemoteModel, AddRemoteModelUseCase, server_address


class Answering:
    """Each server says the same of itself, or nothing."""

    def __init__(self, **state: Any) -> None:
        self.state = state

    async def states(self, remote: RemoteModel) -> tuple[ServerState, ...]:
        return tuple(ServerState(url=url, **self.state) for url in remote.urls)


def add(
    store: FileModelStore, servers: Answering, *urls: str, model: str = "m", **fields: Any
) -> AddedRemoteModel:
    use_case = AddRemoteModelUseCase(store, servers)
    return asyncio.run(use_case("team", urls, model, **fields))


@pytest.fixture
def store(tmp_path: Path) -> FileModelStore:
    return FileModelStore(tmp_path, SystemClock(), context_limit=8192)


def test_what_is_not_said_is_asked_of_the_servers(store: FileModelStore) -> None:
    added = add(store, Answering(jobs=4, context_tokens=100_000), "http://gpu:8000", "http://other:1/v1/")
    remote = added.model.remote
    assert remote is not None
    assert remote.urls == ("http://gpu:8000/v1", "http://other:1/v1")
    assert (remote.jobs, remote.slots) == (4, 8)
    assert added.model.context_tokens == 100_000, "the engine here has no say in it"
    assert store.get("team") == added.model
    assert [model.name for model in store.installed()] == ["team"]
    assert added.model.source.startswith("remote, m at ")


def test_what_is_said_counts_and_silent_servers_are_registered_too(store: FileModelStore) -> None:
    silent = Answering(error="It cannot be reached.")
    added = add(store, silent, "https://gpu", jobs=3, context_tokens=64, priority=True, key_variable="KEY")
    remote = added.model.remote
    assert remote == RemoteModel(
        urls=("https://gpu/v1",), model="m", key_variable="KEY", jobs=3, priority=True
    )
    assert store.get("team").sampling is None
    drawn = Sampling(temperature=0.6, top_p=0.95)
    add(store, silent, "https://gpu", sampling=drawn)
    assert store.get("team").sampling == drawn
    again = add(store, silent, "https://gpu").model.remote
    assert again is not None
    assert (again.jobs, again.key_variable) == (1, None), "the newest registration counts"


def test_it_can_be_chosen_checked_and_removed_like_any_model(store: FileModelStore) -> None:
    add(store, Answering(), "http://gpu")
    assert store.use("team").is_default
    assert asyncio.run(store.verify("team")).remote is not None
    assert store.remove("team") == 0
    with pytest.raises(UnknownModel):
        store.get("team")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://gpu:8000", "http://gpu:8000/v1"),
        (" https://h/proxy/v1/ ", "https://h/proxy/v1"),
        ("http://[::1]:80", "http://[::1]:80/v1"),
    ],
)
def test_addresses(url: str, address: str) -> None:
    assert server_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gpu:8000",
        "ftp://gpu",
        "http://",
        "http://a:b@gpu",
        "http://gpu?key=1",
        "http://gpu:x",
        "http://[::1",
    ],
)
def test_what_is_no_address_or_holds_a_secret_is_refused(store: FileModelStore, url: str) -> None:
    with pytest.raises(InvalidRequest):
        add(store, Answering(), url)


@pytest.mark.parametrize("fields", [{"key_variable": "MY KEY"}, {"key_variable": ""}, {"model": " "}])
def test_wrong_names_are_refused(store: FileModelStore, fields: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        add(store, Answering(), "http://gpu", **fields)


def test_a_name_of_the_catalogue_stays_what_it_is(store: FileModelStore) -> None:
    with pytest.raises(InvalidRequest, match="catalogue"):
        store.register_remote("smollm2-135m", RemoteModel(urls=("http://g/v1",), model="m"), None)
