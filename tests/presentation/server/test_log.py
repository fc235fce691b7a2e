"""What the server's log keeps."""

import logging
from asyncio import CancelledError
from pathlib import Path

from starlette.requests import ClientDisconnect

from domain.errors import InvalidRequest
from presentation.server.log import logging_to


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - any, with the way it took
        return caught


def test_mistakes_in_the_code_are_kept_and_what_a_user_was_told_is_not(tmp_path: Path) -> None:
    path = tmp_path / "log" / "server.log"
    nicegui = logging.getLogger("nicegui")
    with logging_to(path):
        nicegui.error("An import is running", exc_info=_raised(InvalidRequest("An import is running.")))
        for gone in (ClientDisconnect(), RuntimeError("No response returned."), CancelledError()):
            logging.getLogger("uvicorn.error").error("hung up", exc_info=_raised(gone))
        logging.getLogger("uvicorn.error").error(
            "Cancel %s running task(s), timeout graceful shutdown exceeded", 4
        )
        nicegui.warning("/notes?q=secret not found")
        nicegui.error("secret", exc_info=_raised(KeyError("secret")))
    text = path.read_text()
    assert "KeyError" in text
    assert "test_log.py" in text
    assert "InvalidRequest" not in text
    assert "secret" not in text
    assert "ClientDisconnect" not in text
    assert "RuntimeError" not in text
    assert "CancelledError" not in text
    assert "running task" not in text
