import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Like `tmp_path`, but in a place that a user without privileges can reach."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
