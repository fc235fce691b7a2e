"""The token of the server."""

import stat
from pathlib import Path

import pytest

from data.server_token import server_token
from domain.errors import InvalidRequest


def test_it_is_made_once_and_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    token = server_token(folder)
    assert len(token) >= 40
    file = folder / "server-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    assert server_token(folder) == token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "short", "é" * 40])
def test_a_damaged_one_is_never_used(text: str, tmp_path: Path) -> None:
    (tmp_path / "server-token").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidRequest, match="Delete the file"):
        server_token(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="cannot be kept"):
        server_token(tmp_path / "file")
