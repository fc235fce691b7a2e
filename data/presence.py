"""Who is open on this machine: the app, the server, the background process.

Each holds a lock on a file in the data folder for as long as it lives. The kernel gives the lock back when the process
ends, however it ends. Several apps may be open at once, so an app's lock is shared, and whoever asks tries for the
exclusive one for an instant. One of them does the background work, and one of them may be the server that others find.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from domain.errors import InvalidRequest, ServerRuns, UniunError

_APP, _BACKGROUND, _SERVER = "app.lock", "background.lock", "server.lock"
_TRIES, _PAUSE_S = 50, 0.02
"""Somebody who asks holds the lock for microseconds; a second of that means that somebody holds it for good."""
_OPENING_TRIES, _OPENING_PAUSE_S = 200, 0.1
"""A server that has the lock and has not said yet where it is."""
_TURN_PAUSE_S = 1.0


@dataclass(frozen=True)
class ServerAddress:
    """How another process of this user finds the server, and what lets it in."""

    url: str
    pid: int
    secret: str


class ServerSeat:
    """Held by the server. Nobody but this user can read the file in which its address stands."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        self._descriptor = descriptor
        self._folder = folder
        self.secret = secrets.token_urlsafe(32)

    def announce(self, url: str) -> None:
        """From now on it is found. Raises `UniunError` if the disk refuses."""
        text = json.dumps(asdict(ServerAddress(url, os.getpid(), self.secret)))
        _write(self._descriptor, text, self._folder)

    def withdraw(self) -> None:
        """It is closing: who looks for it waits until it has closed."""
        os.ftruncate(self._descriptor, 0)


class Presence:
    """Locks in one data folder. `database_url` is none for the database that is in the folder, too."""

    def __init__(self, data_dir: Path, database_url: str | None = None) -> None:
        self._folder = data_dir
        mark = "" if database_url is None else "-" + hashlib.sha256(database_url.encode()).hexdigest()[:12]
        self._open, self._work = f"open{mark}.lock", f"work{mark}.lock"

    @asynccontextmanager
    async def app(self) -> AsyncIterator[bool]:
        """While entered, the app is open. Gives whether no other one was, on this database, when it opened."""
        with self._file(_APP) as descriptor, self._file(self._open) as of_database:
            if not await _lock(descriptor, fcntl.LOCK_SH):
                raise InvalidRequest("A backup is being restored. Start UNIUN again when that is done.")
            alone = _try(of_database, fcntl.LOCK_EX)
            await _lock(of_database, fcntl.LOCK_SH)
            yield alone

    @asynccontextmanager
    async def nobody(self) -> AsyncIterator[None]:
        """While entered, no app is open, none opens, and the background process leaves the database alone.

        Raises `InvalidRequest` if one is open.
        """
        with self._file(_APP) as descriptor:
            if not await _lock(descriptor, fcntl.LOCK_EX):
                raise InvalidRequest(
                    "UNIUN is open: a server, a chat or another command uses it. Nothing was changed. Close it (Ctrl-C where "
                    "it runs), and try again."
                )
            yield

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits until no other app does the background work of this database; while entered, this one does."""
        with self._file(self._work) as descriptor:
            while not await _lock(descriptor, fcntl.LOCK_EX, pause_s=_TURN_PAUSE_S):
                continue
            yield

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """While entered, this is the background process. Raises `InvalidRequest` if there is one already, `UniunError` if
        the disk refuses."""
        with self._file(_BACKGROUND) as descriptor:
            if not await _lock(descriptor, fcntl.LOCK_EX):
                raise InvalidRequest("The background process runs already: uniun background status")
            os.ftruncate(descriptor, 0)
            _write(descriptor, str(os.getpid()), self._folder)
            yield

    @asynccontextmanager
    async def server(self) -> AsyncIterator["ServerSeat"]:
        """While entered, this is the server of this data folder. Raises `ServerRuns` if there is one already."""
        with self._file(_SERVER) as descriptor:
            for _ in range(_TRIES):
                if _try(descriptor, fcntl.LOCK_EX):
                    break
                address = await self.find_server()
                if address is not None:
                    raise ServerRuns(address.url)
                await asyncio.sleep(_PAUSE_S)
            else:
                raise InvalidRequest("Another UNIUN server is opening or closing. Try again in a moment.")
            seat = ServerSeat(descriptor, self._folder)
            seat.withdraw()
            try:
                yield seat
            finally:
                seat.withdraw()

    async def find_server(self) -> "ServerAddress | None":
        """The server of this data folder; one that is about to open or to close is waited for.

        Raises `InvalidRequest` if its address cannot be read.
        """
        for _ in range(_OPENING_TRIES):
            address = self.server_address()
            if address is not None or not self._held(_SERVER, fcntl.LOCK_SH):
                return address
            await asyncio.sleep(_OPENING_PAUSE_S)
        return None

    def server_address(self) -> "ServerAddress | None":
        """Of the server that can be asked at this moment. Raises `InvalidRequest` if it cannot be read."""
        if not self._held(_SERVER, fcntl.LOCK_SH):
            return None
        text = (self._folder / _SERVER).read_text(encoding="utf-8", errors="replace")
        return _address(text) if text.endswith("}") else None

    def server_is_there(self) -> bool:
        """Also while it opens and closes."""
        return self._held(_SERVER, fcntl.LOCK_SH)

    def app_is_open(self) -> bool:
        """Costs two system calls or three."""
        return self._held(_APP, fcntl.LOCK_EX)

    def background_pid(self) -> int | None:
        """The background process, none if there is none."""
        if not self._held(_BACKGROUND, fcntl.LOCK_SH):
            return None
        text = (self._folder / _BACKGROUND).read_text(encoding="ascii", errors="replace")
        return int(text) if text.isdecimal() else None

    def _held(self, name: str, attempt: int) -> bool:
        if not (self._folder / name).exists():
            return False
        try:
            with self._file(name) as descriptor:
                return not _try(descriptor, attempt)
        except InvalidRequest:
            return False  # in a folder that cannot be written nobody opens

    @contextmanager
    def _file(self, name: str) -> Iterator[int]:
        """Closing it gives the lock back; children do not inherit it. Raises `InvalidRequest`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InvalidRequest(
                f"The data folder {self._folder} cannot be written: {error.strerror}. See: uniun doctor"
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _write(descriptor: int, text: str, folder: Path) -> None:
    try:
        os.pwrite(descriptor, text.encode(), 0)
    except OSError as error:
        raise UniunError(
            f"The data folder {folder} cannot be written: {error.strerror}. Free some disk space, and start again."
        ) from error


def _address(text: str) -> ServerAddress:
    try:
        address = ServerAddress(**json.loads(text))
    except (TypeError, ValueError):
        address = ServerAddress("", 0, "")
    if not (isinstance(address.url, str) and address.url and isinstance(address.secret, str)):
        raise InvalidRequest(
            "A UNIUN server of another version runs on this data folder, or its server.lock was changed. "
            "End that server, and start it again."
        )
    return address


async def _lock(descriptor: int, kind: int, pause_s: float = _PAUSE_S) -> bool:
    for _ in range(_TRIES):
        if _try(descriptor, kind):
            return True
        await asyncio.sleep(pause_s)
    return False


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
