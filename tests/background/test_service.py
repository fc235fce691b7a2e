import asyncio
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from background.service import LABEL, UNIT, Answer, UserService
from data.settings import Settings
from domain.errors import InvalidRequest

ODD = '/tmp/a "b" \\c %d $e ü'


class Calls:
    def __init__(self, *failing: str, shown: str = "") -> None:
        self.made: list[list[str]] = []
        self._failing = failing
        self._shown = shown

    def __call__(self, command: Sequence[str]) -> Answer:
        self.made.append(list(command))
        failed = any(word in self._failing for word in command)
        return Answer("Failed to connect to bus." if failed else None, self._shown)


def service(home: Path, platform: str, calls: Calls, **environment: str) -> UserService:
    settings = Settings(data_dir=home / "data", log_dir=home / "logs")
    return UserService(settings, home, platform=platform, environment=environment, call=calls)


def test_systemd(tmp_path: Path) -> None:
    calls = Calls()
    linux = service(tmp_path, "linux", calls, UNIUN_ODD=ODD, UNIUN_DATA_DIR="data", SECRET="x")
    change = linux.install()
    path = tmp_path / ".config" / "systemd" / "user" / UNIT
    assert (change.path, change.done, change.told) == (str(path), True, True)
    assert change.hint == "It ends when you log out. To keep it then, too, run: loginctl enable-linger"
    unit = path.read_text(encoding="utf-8")
    assert f'ExecStart="{sys.executable}" "-P" "-m" "uniun" "background" "run"' in unit
    assert 'Environment="UNIUN_ODD=/tmp/a \\"b\\" \\\\c %%d $e ü"' in unit
    assert f'Environment="UNIUN_DATA_DIR={tmp_path / "data"}"' in unit
    assert "SECRET" not in unit
    assert path.stat().st_mode & 0o077 == 0
    assert [call[:2] for call in calls.made] == [["systemctl", "--user"]] * 4
    assert linux.installed() == str(path)
    assert linux.uninstall().done
    assert linux.installed() is None
    assert not linux.uninstall().done


if shutil.which("systemd-analyze") is not None:

    def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
        linux = service(tmp_path, "linux", Calls(), UNIUN_ODD=ODD)
        path = linux.install().path
        checked = subprocess.run(
            ["systemd-analyze", "verify", "--user", path], capture_output=True, text=True
        )
        assert UNIT not in checked.stderr, checked.stderr


def test_launchd(tmp_path: Path) -> None:
    calls = Calls()
    mac = service(tmp_path, "darwin", calls, UNIUN_ODD=ODD)
    path = tmp_path / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    assert mac.install().path == str(path)
    agent = plistlib.loads(path.read_bytes())
    assert agent["ProgramArguments"] == [sys.executable, "-P", "-m", "uniun", "background", "run"]
    assert agent["EnvironmentVariables"] == {
        "UNIUN_DATA_DIR": str(tmp_path / "data"),
        "UNIUN_LOG_DIR": str(tmp_path / "logs"),
        "UNIUN_ODD": ODD,
    }
    assert agent["RunAtLoad"]
    assert [call[1] for call in calls.made] == ["bootout", "bootstrap"]
    assert mac.log() == f"less {tmp_path / 'logs' / 'background.txt'}"
    assert "does not" in asyncio.run(mac.trouble())
    assert mac.uninstall().done
    assert asyncio.run(mac.trouble()) == ""
    assert not path.exists()


def test_where_there_is_no_systemd_nothing_is_installed(tmp_path: Path) -> None:
    unreached = service(tmp_path, "linux", Calls("systemctl"))
    with pytest.raises(InvalidRequest) as told:
        unreached.install()
    assert str(told.value) == (
        "There is no systemd for this user here (Failed to connect to bus). Nothing was installed. "
        "To have Ganas run while the app is closed, leave this running: uniun background run"
    )
    assert unreached.installed() is None
    assert asyncio.run(unreached.trouble()) == ""


def test_systemd_that_has_gone_is_told_as_such(tmp_path: Path) -> None:
    service(tmp_path, "linux", Calls()).install()
    trouble = asyncio.run(service(tmp_path, "linux", Calls("systemctl")).trouble())
    assert trouble.startswith("It starts with no login: there is no systemd for this user now")
    assert trouble.endswith(": uniun background run")


def test_a_service_that_cannot_be_enabled_is_left_to_do_by_hand(tmp_path: Path) -> None:
    change = service(tmp_path, "linux", Calls("enable")).install()
    assert (change.done, change.told) == (True, False)
    assert change.hint == (
        f"The service manager was not told (Failed to connect to bus). Run: systemctl --user enable --now {UNIT}"
    )


def test_what_was_left_is_removed_without_a_manager(tmp_path: Path) -> None:
    unreached = service(tmp_path, "linux", Calls("systemctl"))
    link = tmp_path / ".config" / "systemd" / "user" / "default.target.wants" / UNIT
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "gone")
    assert unreached.uninstall().done
    assert not link.is_symlink()
    assert not unreached.uninstall().done


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (
            "activating auto-restart exit-code 1",
            "It ended with exit status 1. It is started again after 60 s.",
        ),
        ("failed failed signal 9", "It was killed by signal 9. To start it: uniun background install"),
        ("failed failed timeout 0", "It ended (timeout). To start it: uniun background install"),
        ("active running success 0", "It runs for another data folder."),
        ("activating start success 0", "It is being started."),
        ("deactivating stop-sigterm success 0", "It is being stopped."),
        ("inactive dead success 0", "It was stopped. To start it: uniun background install"),
    ],
)
def test_why_it_does_not_run(tmp_path: Path, shown: str, told: str) -> None:
    names = ("ActiveState", "SubState", "Result", "ExecMainStatus")
    lines = "".join(f"{name}={value}\n" for name, value in zip(names, shown.split(), strict=True))
    linux = service(tmp_path, "linux", Calls(shown=lines))
    assert asyncio.run(linux.trouble()) == ""
    linux.install()
    assert asyncio.run(linux.trouble()).startswith(told)


def test_one_that_does_not_start_is_told(tmp_path: Path) -> None:
    shown = "ActiveState=activating\nSubState=auto-restart\nResult=exit-code\nExecMainStatus=2\n"
    change = service(tmp_path, "linux", Calls("restart", shown=shown)).install()
    assert (change.done, change.told) == (True, False)
    assert "exit status 2" in change.hint
    assert f"What it said: journalctl --user -u {UNIT} -e" in change.hint


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no service manager"):
        service(tmp_path, "win32", Calls()).install()
    with pytest.raises(InvalidRequest, match="line break"):
        service(tmp_path, "linux", Calls(), UNIUN_ODD="a\nExecStart=/bin/evil").install()
    (tmp_path / ".config").write_text("a file")
    with pytest.raises(InvalidRequest, match="could not be written"):
        service(tmp_path, "linux", Calls()).install()


def test_the_real_caller_reports_instead_of_raising(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", log_dir=tmp_path / "logs")
    gone = UserService(settings, tmp_path, platform="darwin", environment={})
    if shutil.which("launchctl") is None:
        assert "launchctl is not there" in gone.install().hint
