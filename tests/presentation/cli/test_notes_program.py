"""The notes commands as a process, on a real database."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.vaults import make_vault

LIMIT_S = 240


def program(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "uniun", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "UNIUN_DATA_DIR": str(home / "data"), "UNIUN_LOG_DIR": str(home / "logs")},
    )


def uniun(home: Path, *arguments: str) -> tuple[int | None, str, str]:
    process = program(home, *arguments)
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def test_from_a_folder_to_a_backup(tmp_path: Path) -> None:
    vault = make_vault(tmp_path / "vault", 60, odd=False)
    (vault.root / "one.md").write_text("# Zanzibar\n\nclove and cinnamon #spice [[Note 1]]")
    assert uniun(tmp_path, "notes", "import", str(vault.root)) == (0, "61 new, 0 changed, 0 as before\n", "")
    assert uniun(tmp_path, "notes", "import", str(vault.root))[1] == "0 new, 0 changed, 61 as before\n"
    status, found, _ = uniun(tmp_path, "notes", "search", "cinnamon")
    assert status == 0
    assert "Zanzibar" in found
    status, shown, _ = uniun(tmp_path, "notes", "show", "zanzibar")
    assert "tags: #spice" in shown
    assert "reading: waits to be read" in shown
    assert uniun(tmp_path, "notes", "show", "absent")[0] == 2
    assert uniun(tmp_path, "export", str(tmp_path / "out"))[0] == 0
    assert len(list((tmp_path / "out" / "notes").iterdir())) == 61
    assert uniun(tmp_path, "backup", str(tmp_path / "copy.db"))[0] == 0
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert uniun(tmp_path, "backup", str(tmp_path / "copy.db"))[0] == 2


def test_a_watch_tells_of_a_file_that_was_deleted_once(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    for name in ("a", "b"):
        (vault / f"{name}.md").write_text(name)
    process = program(tmp_path, "notes", "import", str(vault), "--watch")
    assert process.stderr is not None
    assert "Ctrl-C ends it" in process.stderr.readline()
    for name in ("a", "b"):
        (vault / f"{name}.md").unlink()
        assert process.stderr.readline() == f"uniun: {vault / name}.md is gone; its note stays.\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=LIMIT_S) == ("2 new, 0 changed, 0 as before\n", "")


def test_ctrl_c_ends_a_watch_and_is_no_failure(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("first")
    process = program(tmp_path, "notes", "import", str(vault), "--watch")
    assert process.stdout is not None
    assert process.stderr is not None
    assert "Ctrl-C ends it" in process.stderr.readline()
    (vault / "a.md").write_text("second")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("1 new, 0 changed, 0 as before\n")
