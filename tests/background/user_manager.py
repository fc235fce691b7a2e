"""A systemd user manager of its own, for as long as a test needs one; the machine need not have been booted with systemd."""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SYSTEMD = Path("/usr/lib/systemd/systemd")
_GROUPS = Path("/sys/fs/cgroup")
_BOOTED = Path("/run/systemd/system")
PATIENCE_S = 120


def available() -> bool:
    """Whether systemd is installed, and may make groups of processes: root may, where they are not mounted read-only."""
    installed = SYSTEMD.exists() and shutil.which("systemctl") is not None
    return installed and os.geteuid() == 0 and all(os.access(place, os.W_OK) for place in _hierarchies())


def _hierarchies() -> list[Path]:
    """Where systemd keeps track of processes: version 2, version 1, or both."""
    return [place for name in ("unified", "systemd") if (place := _GROUPS / name).is_dir()] or [_GROUPS]


class UserManager:
    """`home` is the user's; `variables` are set in the user's shell, of which the manager knows nothing."""

    def __init__(self, home: Path, variables: Mapping[str, str]) -> None:
        self.home = home
        self._variables = variables

    def __enter__(self) -> Self:
        # The address of a socket has at most 107 bytes.
        self._runtime = Path(tempfile.mkdtemp(prefix="uniun-systemd-"))
        self._group = self._runtime.name
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self._runtime),
        }
        # In a group of its own it moves nobody else's processes.
        enter = "".join(f"echo $$ >'{place / self._group}/cgroup.procs'; " for place in _hierarchies())
        for place in _hierarchies():
            (place / self._group).mkdir()
        with _as_if_booted(), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(self._runtime / "ready"))
            ready.settimeout(PATIENCE_S)
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"{enter} exec {SYSTEMD} --user --log-target=null"],
                env={**self.environment, "NOTIFY_SOCKET": str(self._runtime / "ready")},
                cwd=self.home,
            )
            while b"READY=1" not in ready.recv(4096):
                continue
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.systemctl("exit")
        try:
            self._process.wait(timeout=PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
        for top in {*_GROUPS.glob(self._group), *_GROUPS.glob(f"*/{self._group}")}:
            for folder, _, _ in os.walk(top, topdown=False):
                os.rmdir(folder)
        shutil.rmtree(self._runtime)

    def systemctl(self, *order: str) -> str:
        """What it says, whatever its exit status."""
        return self._run("systemctl", "--user", *order).stdout.strip()

    def wait_for(self, unit: str, name: str, value: str) -> None:
        """Until this property of the unit has this value."""
        for _ in range(PATIENCE_S * 10):
            if self.systemctl("show", unit, f"--property={name}", "--value") == value:
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=0.1)
        raise AssertionError(f"{name} does not become {value}.\n{self.systemctl('status', unit)}")

    def uniun(self, *arguments: str, **environment: str) -> str:
        """What `uniun ARGUMENTS` says."""
        done = self._run(sys.executable, "-m", "uniun", *arguments, **environment)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**self.environment, **self._variables, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


@contextmanager
def _as_if_booted() -> Iterator[None]:
    """systemd begins only where this folder is, and others ask it too; so it is there no longer than need be."""
    with (Path(tempfile.gettempdir()) / "uniun-systemd.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        made = not _BOOTED.exists()
        _BOOTED.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            if made:
                _BOOTED.rmdir()
