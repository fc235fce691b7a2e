import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.clock import SystemClock
from data.models.catalogue import CATALOGUE
from data.models.folder import StoreFolder
from data.models.manifest import FILE_NAME
from data.models.store import FileModelStore
from domain.entities.models import InstalledModel
from domain.errors import InvalidRequest, ModelDamaged, ModelUnavailable, StoreBusy, UnknownModel


@pytest.fixture
def gguf(tmp_path: Path, tiny_gguf: bytes) -> Path:
    path = tmp_path / "mine" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(tiny_gguf)
    return path


def test_the_catalogue_begins_with_the_model_that_needs_no_hub() -> None:
    first, *others = CATALOGUE

    assert first.entry.name == "smollm2-135m"
    assert first.wheel is not None
    assert all(offer.repository and offer.wheel is None for offer in others)
    assert len({offer.entry.name for offer in CATALOGUE}) == len(CATALOGUE)
    assert all(offer.entry.memory_bytes > offer.entry.download_bytes for offer in CATALOGUE)


def test_an_empty_store_has_a_default_but_no_model(store: FileModelStore) -> None:
    assert store.installed() == ()
    assert store.default_name() == "tiny"
    with pytest.raises(UnknownModel, match="not installed"):
        store.get("tiny")


def test_unknown_names_get_near_ones(store: FileModelStore) -> None:
    with pytest.raises(UnknownModel, match=r"no model 'tinny'\. Did you mean tiny\?"):
        store.get("tinny")
    with pytest.raises(UnknownModel, match="no model 'nothing-like-it'"):
        asyncio.run(store.pull("nothing-like-it", lambda step: None))


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/../b", "/etc", "a/b/c", "a--b", "a b", ".hidden", "x" * 200, "a\n"]
)
def test_names_that_could_leave_the_store_are_refused(store: FileModelStore, gguf: Path, name: str) -> None:
    for attempt in (
        lambda: store.get(name),
        lambda: store.register(name, gguf),
        lambda: store.remove(name),
        lambda: store.use(name),
        lambda: asyncio.run(store.pull(name, lambda step: None)),
    ):
        with pytest.raises(InvalidRequest):
            attempt()


def test_registering_copies_nothing_and_removing_deletes_nothing(
    store: FileModelStore, gguf: Path, tmp_path: Path
) -> None:
    model = store.register("mine", gguf)

    assert (model.gguf_path, model.mlx_path, model.context_tokens) == (gguf, None, 128)
    assert store.installed() == (model,)
    assert not list((tmp_path / "store").rglob("*.gguf"))
    assert store.remove("mine") == 0
    assert gguf.exists()
    assert store.installed() == ()


def test_the_same_file_may_have_two_names(store: FileModelStore, gguf: Path) -> None:
    store.register("first", gguf)
    store.register("second", gguf)
    store.register("second", gguf)  # again is no mistake

    assert [model.name for model in store.installed()] == ["first", "second"]


def test_a_registered_file_that_changed_or_went_away_is_named(store: FileModelStore, gguf: Path) -> None:
    store.register("mine", gguf)
    gguf.write_bytes(gguf.read_bytes() + b"more")
    with pytest.raises(ModelDamaged, match=r"model\.gguf has \d+ bytes.*register mine again"):
        store.get("mine")

    gguf.unlink()
    with pytest.raises(ModelDamaged, match=r"model\.gguf cannot be read"):
        store.get("mine")
    with pytest.raises(ModelDamaged):
        asyncio.run(store.pull("mine", lambda step: None))  # there is nowhere to fetch it from
    assert store.remove("mine") == 0


def test_what_cannot_be_registered(store: FileModelStore, gguf: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="does not exist"):
        store.register("mine", tmp_path / "nowhere")
    with pytest.raises(ModelDamaged, match=r"lacks config\.json"):
        store.register("mine", gguf.parent)
    with pytest.raises(InvalidRequest, match="catalogue"):
        store.register("tiny", gguf)


def test_use_is_remembered_and_forgotten_with_the_model(
    store: FileModelStore, gguf: Path, tmp_path: Path, tiny_offer: Any
) -> None:
    store.register("mine", gguf)

    assert store.use("mine").is_default
    again = FileModelStore(tmp_path / "store", store._clock, offers=(tiny_offer,))
    assert again.default_name() == "mine"
    store.remove("mine")
    assert store.default_name() == "tiny"
    with pytest.raises(UnknownModel):
        store.use("mine")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"default": "../x"}', '{"default": 3.5}'])
def test_a_broken_choice_is_no_choice(store: FileModelStore, tmp_path: Path, content: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "settings.json").write_text(content)

    assert store.default_name() in ("tiny", "3.5")


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"gguf": "../../secret"},
        {"mlx": "/etc"},
        {"files": [{"path": "../x", "size_bytes": 1}]},
        {"surprise": 1},
    ],
)
def test_a_manifest_that_says_what_it_must_not_is_damage(
    store: FileModelStore, gguf: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    store.register("mine", gguf)
    path = tmp_path / "store" / "models" / "mine" / FILE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    with pytest.raises(ModelDamaged, match=r"manifest\.json is damaged"):
        store.get("mine")
    assert store.installed() == ()


def test_writers_exclude_each_other_and_readers_do_not_care(
    store: FileModelStore, gguf: Path, tmp_path: Path
) -> None:
    store.register("mine", gguf)
    with StoreFolder(tmp_path / "store").exclusive():
        for write in (
            lambda: store.register("other", gguf),
            lambda: store.remove("mine"),
            lambda: asyncio.run(store.pull("tiny", lambda step: None)),
        ):
            with pytest.raises(StoreBusy, match=rf"process {os.getpid()}\b"):
                write()
        assert store.get("mine") == store.installed()[0]
        store.use("mine")
    store.remove("mine")


def test_a_name_of_the_catalogue_is_not_installed_rather_than_unknown(store: FileModelStore) -> None:
    for call in (lambda: store.get("tiny"), lambda: store.use("tiny"), lambda: store.remove("tiny")):
        with pytest.raises(UnknownModel, match=r"^The model tiny is not installed.*uniun models pull tiny$"):
            call()


def test_a_home_folder_that_is_not_there_is_named(store: FileModelStore) -> None:
    with pytest.raises(InvalidRequest, match="~nobody-of-this-name/x leads nowhere"):
        store.register("mine", Path("~nobody-of-this-name/x"))


def test_a_model_is_removed_though_nobody_can_be_told_who_does_it(
    store: FileModelStore, gguf: Path, tmp_path: Path
) -> None:
    store.register("mine", gguf)
    (tmp_path / "store" / "lock-holder").mkdir()  # cannot be written, as on a full disk
    store.remove("mine")
    assert store.installed() == ()
    store.register("mine", gguf)  # the lock was let go


def test_an_installed_name_is_not_overwritten_by_registering(
    store: FileModelStore, gguf: Path, tmp_path: Path, gguf_of: Callable[..., bytes]
) -> None:
    store.register("owner/name", gguf)
    manifest = tmp_path / "store" / "models" / "owner--name" / FILE_NAME
    value = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**value, "registered": None}))

    with pytest.raises(InvalidRequest, match="installed already"):
        store.register("owner/name", gguf)


def test_a_store_that_cannot_be_written_says_so(store: FileModelStore, gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")

    with pytest.raises(ModelUnavailable, match="cannot be written"):
        store.register("mine", gguf)
    with pytest.raises(ModelUnavailable, match="cannot be written"):
        asyncio.run(store.pull("tiny", lambda step: None))


@pytest.mark.model
def test_no_more_context_is_promised_than_the_engine_gives(smollm2: InstalledModel, tmp_path: Path) -> None:
    assert smollm2.gguf_path is not None
    for limit, promised in ((None, 8192), (100_000, 8192), (256, 256)):
        store = FileModelStore(tmp_path / str(limit), SystemClock(), context_limit=limit)
        assert store.register("mine", smollm2.gguf_path).context_tokens == promised
        assert store.get("mine").context_tokens == promised
