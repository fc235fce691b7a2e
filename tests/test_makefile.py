"""The Makefile mends a damaged .venv by itself. Instead of uv a script makes a small .venv, and the program is a small one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).resolve().parents[1] / "Makefile"
LIMIT_S = 240
UV = f"""#!/bin/sh
echo set up >>uv-calls
{sys.executable} -m venv --without-pip .venv
cd .venv/lib/python*/site-packages && mkdir -p thing thing-1.dist-info && echo word = 1 >thing/__init__.py
printf 'Name: thing\\nVersion: 1\\n' >thing-1.dist-info/METADATA
printf 'thing/__init__.py,,9\\nthing/__pycache__/__init__.pyc,,\\n' >thing-1.dist-info/RECORD
"""
PROGRAM = """
import sys, thing
print("started", *sys.argv[1:], thing.word)
sys.exit(3 if "--fail" in sys.argv else 0)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Set up, and run once."""
    folder = tmp_path / "check out"
    folder.mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "uv").write_text(UV)
    (folder / "bin" / "uv").chmod(0o755)
    (folder / "uniun.py").write_text(PROGRAM)
    (folder / "pyproject.toml").touch()
    shutil.copy(MAKEFILE, folder)
    assert run(folder) == (0, "started serve --open 1\n", 1)
    return folder


def run(folder: Path, arguments: str = "") -> tuple[int, str, int]:
    """The exit status, what the program printed, and how often all was set up so far."""
    # A make that runs these tests would have this one say that it is inside of it.
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    ran = subprocess.run(
        ["make", "run", f"ARGS={arguments}"],
        cwd=folder,
        env={**outside, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    return ran.returncode, ran.stdout, len((folder / "uv-calls").read_text().splitlines())


def package(folder: Path) -> Path:
    (found,) = folder.glob(".venv/lib/python*/site-packages/thing")
    return found


def test_a_program_that_fails_in_a_whole_environment_fails(checkout: Path) -> None:
    assert run(checkout) == (0, "started serve --open 1\n", 1)
    assert run(checkout, "--fail") == (2, "started serve --open --fail 1\n", 1)


def test_an_interpreter_that_is_gone(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "python").unlink()
    (checkout / ".venv" / "bin" / "python").symlink_to("/nowhere/python3")
    assert run(checkout) == (0, "started serve --open 1\n", 2)


def test_a_package_that_is_gone(checkout: Path) -> None:
    shutil.rmtree(package(checkout))
    assert run(checkout) == (0, "started serve --open 1\n", 2)


def test_a_package_that_is_gone_with_what_is_known_of_it(checkout: Path) -> None:
    shutil.rmtree(package(checkout).with_name("thing-1.dist-info"))
    shutil.rmtree(package(checkout))
    assert run(checkout) == (0, "started serve --open 1\n", 2)


def test_a_file_that_was_half_written(checkout: Path) -> None:
    (package(checkout) / "__init__.py").write_text("wo")
    assert run(checkout) == (0, "started serve --open 1\n", 2)


def test_a_folder_that_was_moved_is_whole_until_something_fails(checkout: Path) -> None:
    moved = checkout.rename(checkout.with_name("moved"))
    assert run(moved) == (0, "started serve --open 1\n", 1)
    assert run(moved, "--fail")[2] == 2
    assert run(moved, "--fail")[2] == 2
