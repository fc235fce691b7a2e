"""The hub's own client against a small hub on the loopback."""

import asyncio
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from data.models.store import FileModelStore
from domain.entities.models import PullProgress
from domain.errors import ModelDamaged, ModelUnavailable, UnknownModel

REPOSITORY = "someone/some-model"
REVISION = "a" * 40


def _weights(floats: int = 200_000) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [floats], "data_offsets": [0, 4 * floats]}}).encode()
    return struct.pack("<Q", len(header)) + header + b"\1" * 4 * floats


FILES = {
    "config.json": b'{"max_position_embeddings": 77}',
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}',
    "model.safetensors": _weights(),
    "modeling_evil.py": b"raise SystemExit",
    "onnx/model.json": b"{}",
}


class FakeHub:
    """Speaks as much of the hub's protocol as a download needs; `served` may differ from what is `listed`."""

    def __init__(self) -> None:
        self.listed = dict(FILES)
        self.served = dict(FILES)
        self.fetched: list[str] = []
        self.cut_once: set[str] = set()
        """Files whose first transfer breaks off in the middle."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._file(body=False)

            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                if path.startswith(f"/api/models/{REPOSITORY}/tree/"):
                    self._json(hub._tree())
                elif path.startswith(f"/api/models/{REPOSITORY}"):
                    self._json(hub._info())
                elif "/resolve/" in path:
                    self._file(body=True)
                else:
                    self.send_response(404)
                    self.send_header("X-Error-Code", "RepoNotFound")
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def _json(self, value: object) -> None:
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _file(self, *, body: bool) -> None:
                name = self.path.split(f"/resolve/{REVISION}/")[-1].split("?")[0]
                content, start = hub.served[name], 0
                wanted = self.headers.get("Range", "")
                if wanted.startswith("bytes="):
                    start = int(wanted.removeprefix("bytes=").split("-")[0])
                self.send_response(206 if start else 200)
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", REVISION)
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Length", str(len(content) - start))
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                self.end_headers()
                if body:
                    hub.fetched.append(f"{name} from {start}")
                    end = len(content) // 2 if name in hub.cut_once else len(content)
                    hub.cut_once.discard(name)
                    self.wfile.write(content[start:end])
                    self.close_connection = end < len(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the overridden one's
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def _info(self) -> dict[str, Any]:
        siblings = [
            {"rfilename": name, "size": len(body), **_large(name, body)} for name, body in self.listed.items()
        ]
        return {
            "id": REPOSITORY,
            "modelId": REPOSITORY,
            "sha": REVISION,
            "tags": ["license:mit"],
            "siblings": siblings,
        }

    def _tree(self) -> list[dict[str, Any]]:
        return [
            {"type": "file", "path": name, "size": len(body), "oid": "b" * 40, **_large(name, body)}
            for name, body in self.listed.items()
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _large(name: str, body: bytes) -> dict[str, Any]:
    if not name.endswith(".safetensors"):
        return {}
    digest = hashlib.sha256(body).hexdigest()
    return {"lfs": {"sha256": digest, "oid": digest, "size": len(body), "pointerSize": 1}}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    server = FakeHub()
    for name in ("HTTP_PROXY", "http_proxy", "HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    yield server
    server.close()


def _pull(store: FileModelStore, seen: Callable[[PullProgress], None] = lambda step: None) -> Any:
    return asyncio.run(store.pull(REPOSITORY, seen))


def test_a_repository_becomes_a_model_without_its_code(
    hub: FakeHub, store: FileModelStore, tmp_path: Path
) -> None:
    seen: list[PullProgress] = []

    model = _pull(store, seen.append)

    assert model.name == REPOSITORY
    assert (model.licence, model.context_tokens, model.gguf_path) == ("mit", 77, None)
    assert REVISION in model.source
    assert model.mlx_path is not None
    assert sorted(path.name for path in model.mlx_path.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert list(dict.fromkeys(step.stage for step in seen if step.stage != "download")) == ["check", "done"]
    assert list((tmp_path / "store" / "partial").iterdir()) == []


def test_a_broken_transfer_is_resumed(hub: FakeHub, store: FileModelStore) -> None:
    # The client writes blocks of 10 MB, so a smaller file would begin again.
    hub.listed["model.safetensors"] = hub.served["model.safetensors"] = _weights(6_000_000)
    hub.cut_once = {"model.safetensors"}

    assert _pull(store).context_tokens == 77

    starts = [int(entry.split()[-1]) for entry in hub.fetched if entry.startswith("model.safetensors")]
    assert len(starts) == 2
    assert starts[1] > 0


def test_other_bytes_than_the_hub_promised_are_refused(
    hub: FakeHub, store: FileModelStore, tmp_path: Path
) -> None:
    hub.served["model.safetensors"] = _weights()[:-1] + b"\2"

    with pytest.raises(ModelDamaged, match=r"model\.safetensors arrived damaged"):
        _pull(store)

    assert store.installed() == ()
    assert list((tmp_path / "store" / "partial").iterdir()) == []
    hub.served = dict(FILES)
    assert _pull(store).context_tokens == 77


def test_a_repository_without_a_tokenizer_is_no_model(hub: FakeHub, store: FileModelStore) -> None:
    del hub.listed["tokenizer.json"]

    with pytest.raises(ModelDamaged, match=r"lacks a tokenizer"):
        _pull(store)


def test_a_repository_of_another_format_is_said_to_be_one(hub: FakeHub, store: FileModelStore) -> None:
    hub.listed = {"config.json": b"{}", "model-Q4_K_M.gguf": b"GGUF"}

    with pytest.raises(ModelUnavailable, match="not in MLX format"):
        _pull(store)
    assert hub.fetched == []


def test_room_is_asked_for_before_the_download(hub: FakeHub, tmp_path: Path, tiny_offer: Any) -> None:
    from data.clock import SystemClock

    poor = FileModelStore(tmp_path / "store", SystemClock(), offers=(tiny_offer,), free=lambda folder: 10)

    with pytest.raises(ModelUnavailable, match=r"needs 800\d\d\d bytes .* 10 bytes are free"):
        _pull(poor)
    assert not [entry for entry in hub.fetched if entry.startswith("model")]


def test_a_repository_that_does_not_exist(hub: FakeHub, store: FileModelStore) -> None:
    with pytest.raises(UnknownModel, match="has no repository someone/nothing"):
        asyncio.run(store.pull("someone/nothing", lambda step: None))


def test_an_unreachable_hub_points_to_the_model_that_needs_none(
    hub: FakeHub, store: FileModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(
            ModelUnavailable, match=r"the hub cannot be reached; .*`smollm2-135m` does not need the hub"
        ):
            _pull(store)
    store.remove(REPOSITORY)  # what was begun can be thrown away
    with pytest.raises(UnknownModel):
        store.remove(REPOSITORY)
