"""What goes over the pipes between this program and its child processes: one JSON object a line."""

import json
from typing import Any

MAX_LINE_BYTES = 64 * 1024 * 1024

Line = dict[str, Any]


def encode(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def decode(raw: bytes) -> Line:
    """Raises `ValueError` for anything but one complete JSON object."""
    if not raw.endswith(b"\n"):
        raise ValueError("the line is cut off")
    try:
        line = json.loads(raw)
    except RecursionError as error:
        raise ValueError("the line is nested too deeply") from error
    if not isinstance(line, dict):
        raise ValueError("the line is not a JSON object")
    return line
