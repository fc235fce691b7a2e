"""Real servers in processes of their own, started and killed by tests.

As a program, `python -m tests.data.inference.remote.servers GGUF SLOTS CONTEXT PORT` is llama.cpp's server.
"""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[4]
START_LIMIT_S = 120.0
CONTEXT_TOKENS = 512


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class RealServer:
    """llama.cpp's server or mlx_lm's. Use it as a context."""

    def __init__(self, kind: str, model: Path, *, slots: int = 1, port: int | None = None) -> None:
        self.kind, self.model, self.slots = kind, model, slots
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._libraries = tempfile.TemporaryDirectory()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "RealServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._libraries.cleanup()

    def start(self) -> None:
        """Returns when it answers."""
        if self.kind == "llama.cpp":
            arguments = [str(self.model), str(self.slots), str(CONTEXT_TOKENS), str(self.port)]
            command = [sys.executable, "-m", "tests.data.inference.remote.servers", *arguments]
        else:
            arguments = ["--model", str(self.model), "--port", str(self.port), "--log-level", "ERROR"]
            command = [sys.executable, "-m", "mlx_lm", "server", *arguments]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **self._openmp()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._wait()

    def _wait(self) -> None:
        """Connecting blocks for a moment when nobody listens; so this asks again at the pace of the machine."""
        assert self._process is not None
        deadline = time.clock_gettime(time.CLOCK_MONOTONIC) + START_LIMIT_S
        while self._process.poll() is None and time.clock_gettime(time.CLOCK_MONOTONIC) < deadline:
            try:
                if httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=5, trust_env=False).is_success:
                    return
            except httpx.HTTPError:
                with subprocess.Popen(["sleep", "0.1"]) as pause:
                    pause.wait()
        raise AssertionError(f"{self.kind} did not start")

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _openmp(self) -> dict[str, str]:
        """xllamacpp wants the system's OpenMP library; where there is none, the one that cyllama brings."""
        spec = importlib.util.find_spec("cyllama")
        if self.kind != "llama.cpp" or spec is None or spec.origin is None:
            return {}
        for library in Path(spec.origin).parents[1].glob("cyllama.libs/libgomp*"):
            link = Path(self._libraries.name) / "libgomp.so.1"
            if not link.exists():
                link.symlink_to(library)
        return {"LD_LIBRARY_PATH": self._libraries.name}


def _serve(gguf: str, slots: int, context_tokens: int, port: int) -> None:
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = gguf
    params.port = port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_parallel = slots
    params.n_ctx = context_tokens * slots
    params.kv_unified = False
    params.use_jinja = True
    server = xllamacpp.Server(params)
    assert server.listening_address
    signal.pause()


if __name__ == "__main__":
    _serve(sys.argv[1], *map(int, sys.argv[2:]))
