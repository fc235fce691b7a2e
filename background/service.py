"""Keeps the background process running: a launchd agent on macOS, a systemd user unit elsewhere."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from background.service_files import RESTART_S, launchd_agent, systemd_unit
from data.presence import Presence
from data.settings import Settings
from domain.entities.background import ServiceChange
from domain.errors import InvalidRequest

LABEL = "org.uniun.background"
UNIT = "uniun-background.service"
PATIENCE_S = 120
"""Longer than systemd itself waits for a service that starts or ends."""
_PASSED_ON = "UNIUN_"
_LINGERING = Path("/var/lib/systemd/linger")
_BY_HAND = "To have Ganas run while the app is closed, leave this running: uniun background run"
_AGAIN = "To start it: uniun background install"

Command = Sequence[str]


class Answer(NamedTuple):
    """What a service manager's program said."""

    failure: str | None
    """Why it did not do what it was told; none when it did."""
    text: str = ""


class UserService:
    """Implements `BackgroundService` for one user's home."""

    def __init__(
        self,
        settings: Settings,
        home: Path,
        *,
        platform: str = sys.platform,
        environment: Mapping[str, str] | None = None,
        call: Callable[[Command], Answer] | None = None,
    ) -> None:
        self._settings = settings
        self._presence = Presence(settings.data_dir)
        self._mac = platform == "darwin"
        self._platform = platform
        self._environment = dict(os.environ if environment is None else environment)
        self._call = call or _call
        config = Path(self._environment.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user"
        self._path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist" if self._mac else config / UNIT
        self._link = config / "default.target.wants" / UNIT

    def install(self) -> ServiceChange:
        if not self._mac and not self._platform.startswith("linux"):
            raise InvalidRequest(
                f"There is no service manager for {self._platform} here. Start it yourself: uniun background run"
            )
        if not self._mac and (failure := self._systemd("show-environment").failure) is not None:
            raise InvalidRequest(
                f"There is no systemd for this user here ({_short(failure)}). Nothing was installed. {_BY_HAND}"
            )
        # -P: a service starts in the home folder, which may hold anything.
        command = [sys.executable, "-P", "-m", "uniun", "background", "run"]
        if self._mac:
            content = launchd_agent(LABEL, command, self._variables(), self._mac_log())
        else:
            content = systemd_unit(command, self._variables()).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._settings.log_dir.mkdir(parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            # A variable may hold the password of a database.
            with open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
        except OSError as error:
            raise InvalidRequest(f"{self._path} could not be written: {error.strerror}.") from error
        return self._start_agent() if self._mac else self._start_unit()

    def _start_agent(self) -> ServiceChange:
        # Booting out what is not loaded fails, and that is well.
        self._call(["launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"])
        start = ["launchctl", "bootstrap", f"gui/{os.getuid()}", str(self._path)]
        failure = self._call(start).failure
        return self._change(failure is None, _not_told(failure, start))

    def _start_unit(self) -> ServiceChange:
        for order in (["daemon-reload"], ["enable", UNIT]):
            failure = self._systemd(*order).failure
            if failure is not None:
                return self._change(
                    False, _not_told(failure, ["systemctl", "--user", "enable", "--now", UNIT])
                )
        failure = self._systemd("restart", UNIT).failure
        if failure is not None:
            return self._change(False, f"{self._trouble() or _short(failure)} {self._log_words()}".strip())
        user = self._environment.get("USER") or self._environment.get("LOGNAME") or ""
        if user and (_LINGERING / user).exists():
            return self._change(True, "")
        return self._change(
            True, "It ends when you log out. To keep it then, too, run: loginctl enable-linger"
        )

    def uninstall(self) -> ServiceChange:
        if self.installed() is None and not self._link.is_symlink():
            return ServiceChange(path=str(self._path), done=False)
        stop = (
            ["launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"]
            if self._mac
            else ["systemctl", "--user", "disable", "--now", UNIT]
        )
        failure = self._call(stop).failure
        try:
            self._path.unlink(missing_ok=True)
            self._link.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidRequest(f"{self._path} could not be removed: {error.strerror}.") from error
        if not self._mac:
            self._systemd("daemon-reload")
            # One that had failed would be listed until the next login.
            self._systemd("reset-failed", UNIT)
        running = self.pid()
        if failure is None or running is None:
            return self._change(True, "")
        return self._change(False, f"{_not_told(failure, ['kill', str(running)])} It still runs.")

    def installed(self) -> str | None:
        return str(self._path) if self._path.exists() else None

    def pid(self) -> int | None:
        return self._presence.background_pid()

    def app_is_open(self) -> bool:
        return self._presence.app_is_open()

    def log(self) -> str:
        return f"less {shlex.quote(self._mac_log())}" if self._mac else f"journalctl --user -u {UNIT} -e"

    async def trouble(self) -> str:
        return await asyncio.to_thread(self._trouble)

    def _trouble(self) -> str:
        if self.installed() is None:
            return ""
        if self._mac:
            return "" if self.pid() is not None else f"It should run, and does not. {_AGAIN}"
        asked = self._systemd(
            "show", UNIT, "--property=ActiveState,SubState,Result,ExecMainStatus,UnitFileState"
        )
        if asked.failure is not None:
            runs = "" if self.pid() is not None else f" {_BY_HAND}"
            return f"It starts with no login: there is no systemd for this user now ({_short(asked.failure)}).{runs}"
        found = dict(line.partition("=")[::2] for line in asked.text.splitlines())
        if self.pid() is None:
            return _why_it_does_not_run(found)
        if found.get("UnitFileState") != "enabled":
            return f"It does not start when you log in. {_AGAIN}"
        return ""

    def _systemd(self, *order: str) -> Answer:
        return self._call(["systemctl", "--user", *order])

    def _mac_log(self) -> str:
        return str(self._settings.log_dir / "background.txt")

    def _log_words(self) -> str:
        return f"What it said: {self.log()}"

    def _change(self, told: bool, hint: str) -> ServiceChange:
        return ServiceChange(path=str(self._path), done=True, told=told, hint=hint)

    def _variables(self) -> dict[str, str]:
        """A service inherits nothing of a shell, and its working folder is another one."""
        passed_on = {name: value for name, value in self._environment.items() if name.startswith(_PASSED_ON)}
        folders = {
            "UNIUN_DATA_DIR": str(self._settings.data_dir.absolute()),
            "UNIUN_LOG_DIR": str(self._settings.log_dir.absolute()),
        }
        return dict(sorted((passed_on | folders).items()))


def _why_it_does_not_run(found: Mapping[str, str]) -> str:
    """From systemd's properties of the unit. See org.freedesktop.systemd1(5)."""
    end = {
        "exit-code": f"It ended with exit status {found.get('ExecMainStatus')}.",
        "signal": f"It was killed by signal {found.get('ExecMainStatus')}.",
    }.get(found.get("Result", ""), f"It ended ({found.get('Result')}).")
    match found.get("ActiveState"), found.get("SubState"):
        case "activating", "auto-restart":
            return f"{end} It is started again after {RESTART_S} s."
        case "failed", _:
            return f"{end} {_AGAIN}"
        case "active", _:
            return "It runs for another data folder. To have it run for this one: uniun background install"
        case "activating" | "deactivating" as state, _:
            return f"It is being {'started' if state == 'activating' else 'stopped'}."
        case _:
            return f"It was stopped. {_AGAIN}"


def _call(command: Command) -> Answer:
    if shutil.which(command[0]) is None:
        return Answer(f"{command[0]} is not there")
    # Where nobody logged in, as after su, systemctl does not know where to ask.
    runtime = f"/run/user/{os.getuid()}"
    environment = {"XDG_RUNTIME_DIR": runtime} if Path(runtime).is_dir() else {}
    try:
        done = subprocess.run(
            list(command),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            env=environment | os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Answer(str(error))
    if done.returncode == 0:
        return Answer(None, done.stdout)
    return Answer(done.stderr.strip() or f"exit status {done.returncode}")


def _short(reason: str) -> str:
    return " ".join(reason.split())[:200].rstrip(".")


def _not_told(failure: str | None, by_hand: Command) -> str:
    if failure is None:
        return ""
    return f"The service manager was not told ({_short(failure)}). Run: {' '.join(by_hand)}"
