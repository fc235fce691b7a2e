import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from background.service import LABEL, UNIT, UserService
from data.settings import Settings
from domain.errors import InvalidRequest

ODD = '/tmp/a "b" \\c %d $e ü'


class Calls:
    def __init__(self, *failing: str) -> None:
        self.made: list[list[str]] = []
        self._failing = failing

    def __call__(self, command: Sequence[str]) -> str | None:
        self.made.append(list(command))
        return "Failed to connect to bus." if command[0] in self._failing else None


def service(home: Path, platform: str, calls: Calls, **environment: str) -> UserService:
    settings = Settings(data_dir=home / "data", log_dir=home / "logs")
    return UserService(settings, home, platform=platform, environment=environment, call=calls)


def test_systemd(tmp_path: Path) -> None:
    calls = Calls()
    linux = service(tmp_path, "linux", calls, UNIUN_DATA_DIR=ODD, SECRET="x")
    change = linux.install()
    path = tmp_path / ".config" / "systemd" / "user" / UNIT
    assert (change.path, change.done, change.hint) == (str(path), True, "")
    unit = path.read_text(encoding="utf-8")
    assert f'ExecStart="{sys.executable}" "-m" "uniun" "background" "run"' in unit
    assert 'Environment="UNIUN_DATA_DIR=/tmp/a \\"b\\" \\\\c %%d $e ü"' in unit
    assert "SECRET" not in unit
    assert [call[:2] for call in calls.made] == [["systemctl", "--user"]] * 3
    assert linux.installed() == str(path)
    assert linux.uninstall().done
    assert linux.installed() is None
    assert not linux.uninstall().done


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    linux = service(tmp_path, "linux", Calls(), UNIUN_DATA_DIR=ODD)
    path = linux.install().path
    checked = subprocess.run(["systemd-analyze", "verify", "--user", path], capture_output=True, text=True)
    assert UNIT not in checked.stderr, checked.stderr


def test_launchd(tmp_path: Path) -> None:
    calls = Calls()
    mac = service(tmp_path, "darwin", calls, UNIUN_DATA_DIR=ODD)
    path = tmp_path / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    assert mac.install().path == str(path)
    agent = plistlib.loads(path.read_bytes())
    assert agent["ProgramArguments"] == [sys.executable, "-m", "uniun", "background", "run"]
    assert agent["EnvironmentVariables"] == {"UNIUN_DATA_DIR": ODD}
    assert agent["RunAtLoad"]
    assert [call[1] for call in calls.made] == ["bootout", "bootstrap"]
    assert mac.uninstall().done
    assert not path.exists()


def test_a_manager_that_cannot_be_reached_is_told_by_hand(tmp_path: Path) -> None:
    change = service(tmp_path, "linux", Calls("systemctl")).install()
    assert change.done
    assert "Failed to connect to bus" in change.hint
    assert "systemctl --user restart" in change.hint


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no service manager"):
        service(tmp_path, "win32", Calls()).install()
    with pytest.raises(InvalidRequest, match="line break"):
        service(tmp_path, "linux", Calls(), UNIUN_DATA_DIR="a\nExecStart=/bin/evil").install()
    (tmp_path / ".config").write_text("a file")
    with pytest.raises(InvalidRequest, match="could not be written"):
        service(tmp_path, "linux", Calls()).install()


def test_the_real_caller_reports_instead_of_raising(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", log_dir=tmp_path / "logs")
    gone = UserService(settings, tmp_path, platform="darwin", environment={})
    if shutil.which("launchctl") is None:
        assert "launchctl is not there" in gone.install().hint
