"""A parent that is killed leaves no engine, however early and whatever the engine is doing."""

import contextlib
import os
import signal
import subprocess
import sys

import psutil
import pytest

START = [sys.executable, "-m", "data.inference.start"]
CHILD = """
import os, signal, sys
from data.children.start import die_with
die_with(os.getppid())
print(os.getpid(), *sorted({"psutil", "pydantic", "numpy", "asyncio", "data.inference.engine"} & set(sys.modules)), flush=True)
signal.pause()
"""
PARENT = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {CHILD!r}]).wait()
"""


if sys.platform == "linux":  # elsewhere a stopped process cannot notice

    def test_a_child_that_is_stopped_before_its_imports_dies_with_its_parent() -> None:
        with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            pid, *imported = parent.stdout.readline().split()
            child = psutil.Process(int(pid))
            child.suspend()
            parent.kill()
        assert imported == []
        assert psutil.wait_procs([child], timeout=120)[1] == []


def test_an_engine_whose_parent_has_gone_already_ends_at_once() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with subprocess.Popen([*START, str(gone.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        # With the pipe still open, so that it is not the end of file that ends it.
        assert child.wait(timeout=240) == 0


@pytest.mark.parametrize(
    "kind", ["data.inference.process import ENGINE", "data.embedding.backlog import EMBEDDER"]
)
def test_a_parent_killed_right_after_the_start_leaves_no_child(kind: str) -> None:
    script = (
        "import asyncio, os\n"
        "from data.children.process import ChildProcess\n"
        f"from {kind} as KIND\n"
        "async def main():\n"
        "    print((await ChildProcess.start(KIND)).pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.wait_procs([psutil.Process(pid)], timeout=120)[1] == []
