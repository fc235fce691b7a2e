"""Keeps the background process running: a launchd agent on macOS, a systemd user unit elsewhere."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from data.presence import Presence
from data.settings import Settings
from domain.entities.background import ServiceChange
from domain.errors import InvalidRequest

LABEL = "org.uniun.background"
UNIT = "uniun-background.service"
PATIENCE_S = 30
_PASSED_ON = "UNIUN_"

Command = Sequence[str]


class UserService:
    """Implements `BackgroundService` for one user's home."""

    def __init__(
        self,
        settings: Settings,
        home: Path,
        *,
        platform: str = sys.platform,
        environment: Mapping[str, str] | None = None,
        call: Callable[[Command], str | None] | None = None,
    ) -> None:
        self._settings = settings
        self._presence = Presence(settings.data_dir)
        self._platform = platform
        self._environment = dict(os.environ if environment is None else environment)
        self._call = call or _call
        config = Path(self._environment.get("XDG_CONFIG_HOME") or home / ".config")
        self._path = (
            home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
            if platform == "darwin"
            else config / "systemd" / "user" / UNIT
        )

    def install(self) -> ServiceChange:
        if self._platform == "darwin":
            content = self._plist()
            commands = [
                ["launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"],
                ["launchctl", "bootstrap", f"gui/{os.getuid()}", str(self._path)],
            ]
        elif self._platform.startswith("linux"):
            content = self._unit().encode()
            commands = [
                ["systemctl", "--user", "daemon-reload"],
                ["systemctl", "--user", "enable", UNIT],
                ["systemctl", "--user", "restart", UNIT],
            ]
        else:
            raise InvalidRequest(
                f"There is no service manager for {self._platform} here. Start it yourself: uniun background run"
            )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._settings.log_dir.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(content)
        except OSError as error:
            raise InvalidRequest(f"{self._path} could not be written: {error.strerror}.") from error
        # Booting out what is not loaded fails, and that is well.
        failures = [self._call(command) for command in commands]
        return ServiceChange(path=str(self._path), done=True, hint=_hint(failures[-1], commands[-1]))

    def uninstall(self) -> ServiceChange:
        if self.installed() is None:
            return ServiceChange(path=str(self._path), done=False)
        stop = (
            ["launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"]
            if self._platform == "darwin"
            else ["systemctl", "--user", "disable", "--now", UNIT]
        )
        failure = self._call(stop)
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidRequest(f"{self._path} could not be removed: {error.strerror}.") from error
        if self._platform != "darwin":
            self._call(["systemctl", "--user", "daemon-reload"])
        return ServiceChange(path=str(self._path), done=True, hint=_hint(failure, stop))

    def installed(self) -> str | None:
        return str(self._path) if self._path.exists() else None

    def pid(self) -> int | None:
        return self._presence.background_pid()

    def app_is_open(self) -> bool:
        return self._presence.app_is_open()

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "uniun", "background", "run"]

    def _variables(self) -> dict[str, str]:
        """What decides where the data is; a service inherits nothing of a shell."""
        return {
            name: value
            for name, value in sorted(self._environment.items())
            if name.startswith(_PASSED_ON) or name in ("XDG_DATA_HOME", "XDG_STATE_HOME")
        }

    def _plist(self) -> bytes:
        log = str(self._settings.log_dir / "background.txt")
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": self._command(),
                "EnvironmentVariables": self._variables(),
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                "ProcessType": "Background",
                "ThrottleInterval": 60,
                "StandardOutPath": log,
                "StandardErrorPath": log,
            }
        )

    def _unit(self) -> str:
        variables = "".join(
            f"Environment={_quoted(f'{name}={value}')}\n" for name, value in self._variables().items()
        )
        command = " ".join(_quoted(part, command=True) for part in self._command())
        return (
            "[Unit]\n"
            "Description=UNIUN background process\n\n"
            "[Service]\n"
            f"ExecStart={command}\n"
            f"{variables}"
            "Nice=10\n"
            "Restart=on-failure\n"
            "RestartSec=60\n\n"
            "[Install]\n"
            "WantedBy=default.target\n"
        )


def _quoted(text: str, *, command: bool = False) -> str:
    """For a systemd unit: % starts a specifier there, and in a command line $ a variable. See systemd.syntax(7)."""
    if any(character in text for character in "\n\r\0"):
        raise InvalidRequest("A path or variable with a line break cannot be written into a service file.")
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text.replace("$", "$$") if command else text}"'


def _call(command: Command) -> str | None:
    """Why it failed; none when it did not."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not there"
    try:
        done = subprocess.run(list(command), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def _hint(failure: str | None, command: Command) -> str:
    if failure is None:
        return ""
    reason = " ".join(failure.split())[:200].rstrip(".")
    return f"The service manager was not told ({reason}). Run: {' '.join(command)}"
