"""A server whose model store fetches as a test tells it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.presentation.web.conftest import ROOT, Server, _free_port

_PROGRAM = Path(__file__).parent / "fetching_program.py"


@contextmanager
def fetching_server(data_dir: Path) -> Iterator[Server]:
    """Started; stopped at the end. `go` and `fail` below tell it what becomes of a pull."""
    port = _free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "UNIUN_DATA_DIR": str(data_dir),
        "UNIUN_LOG_DIR": str(data_dir / "log"),
    }
    environment.pop("PYTEST_CURRENT_TEST", None)
    server = Server(data_dir, port, [sys.executable, str(_PROGRAM), str(port)], environment=environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def go(server: Server, name: str) -> None:
    """The pull of this model ends well."""
    (server.data_dir / f"go-{name}").touch()


def fail(server: Server, name: str) -> None:
    """The pull of this model fails, once."""
    (server.data_dir / f"fail-{name}").touch()
