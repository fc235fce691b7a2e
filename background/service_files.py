"""What is written down for the service manager: a systemd unit, or a launchd agent."""

import plistlib
from collections.abc import Mapping, Sequence

from domain.errors import InvalidRequest

RESTART_S = 60
"""As long as the process itself lets a due Gana wait, and short of memory or of its database it must not start at once."""


def systemd_unit(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """`variables` may hold any character but line breaks. Raises `InvalidRequest`.

    It has begun when it says so (notify). Only the process itself is told to end (mixed): it ends its engine, and an
    engine that was told too would look like one that broke.
    """
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items())
    return (
        "[Unit]\n"
        "Description=UNIUN background process\n\n"
        "[Service]\n"
        "Type=notify\n"
        f"ExecStart={' '.join(_quoted(part, command=True) for part in command)}\n"
        f"{environment}"
        "Nice=10\n"
        "KillMode=mixed\n"
        "Restart=on-failure\n"
        f"RestartSec={RESTART_S}\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def launchd_agent(label: str, command: Sequence[str], variables: Mapping[str, str], log: str) -> bytes:
    """The property list; `log` is the file that its output goes to."""
    return plistlib.dumps(
        {
            "Label": label,
            "ProgramArguments": list(command),
            "EnvironmentVariables": dict(variables),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ProcessType": "Background",
            "ThrottleInterval": RESTART_S,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
    )


def _quoted(text: str, *, command: bool = False) -> str:
    """% starts a specifier there, and in a command line $ a variable. See systemd.syntax(7)."""
    if any(character in text for character in "\n\r\0"):
        raise InvalidRequest("A path or variable with a line break cannot be written into a service file.")
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text.replace("$", "$$") if command else text}"'
