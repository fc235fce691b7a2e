"""The token that lets browsers and programs of other machines in; made when it is first needed."""

import os
import secrets
from pathlib import Path

from domain.errors import InvalidRequest

_NAME = "server-token"


def server_token(data_dir: Path) -> str:
    """Of this data folder, from a file that only its owner can read. Raises `InvalidRequest`."""
    path = data_dir / _NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if path.exists():
            text = path.read_text(encoding="ascii", errors="replace").strip()
            if len(text) >= 32 and text.isascii():
                path.chmod(0o600)
                return text
            raise InvalidRequest(
                f"The token in {path} is damaged or too short. Delete the file; a new one is made."
            )
        token = secrets.token_urlsafe(32)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
    except OSError as error:
        raise InvalidRequest(f"The token cannot be kept in {path}: {error.strerror}.") from error
    return token
