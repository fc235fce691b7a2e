"""The port."""

import os
import socket
import subprocess
import sys

import psutil
import pytest

from domain.errors import InvalidRequest
from presentation.server.listen import bound

SECRET = sys.platform == "darwin"
"""macOS tells only its administrator who listens."""


def refused(port: int) -> str:
    with pytest.raises(InvalidRequest) as error, bound("127.0.0.1", port):
        pass
    return str(error.value)


def test_who_holds_the_port_is_named_and_one_that_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = refused(port)
    assert words.startswith(f"Port {port} is taken by ")
    assert SECRET or f"the program {psutil.Process().name()}, process {os.getpid()}. " in words
    other = int(words.rpartition(" ")[2])
    assert other > port or port > 65_000
    assert f"UNIUN_SERVER__PORT={other} make run" in words


def test_another_uniun_is_called_so() -> None:
    code = (
        "import socket, sys\n"
        "with socket.create_server(('127.0.0.1', 0)) as taken:\n"
        "    print(taken.getsockname()[1], flush=True)\n"
        "    sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "uniun", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        words = refused(int(other.stdout.readline()))
        assert SECRET or f"another UNIUN, process {other.pid}, with a data folder of its own" in words
