"""The connection to the server of this data folder: loopback, one line of JSON after another."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

import httpx

from data.presence import ServerAddress
from domain.errors import EngineError, ServerLost
from domain.wire import error_from_wire

SILENCE_S = 30.0
"""The server says something every two seconds."""
GREETING_S = 3.0
"""A server that works answers within milliseconds, however much it has to do."""
_LOOK_S = 5.0
_MAX_LINE_CHARACTERS = 64_000_000


class ServerConnection:
    """An async context manager. Every error is a `UniunError`.

    When the server has gone, `look` finds the one that has taken its place.
    """

    def __init__(self, address: ServerAddress, look: Callable[[], ServerAddress | None]) -> None:
        self._address = address
        self._look = look
        self._gone = False
        # No proxy, no .netrc: it never leaves this machine.
        self._client = httpx.AsyncClient(
            trust_env=False,
            timeout=httpx.Timeout(SILENCE_S, connect=_LOOK_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=4),
        )
        self._at_once = httpx.Client(trust_env=False, timeout=_LOOK_S)

    async def __aenter__(self) -> Self:
        """Raises `ServerLost` for a server that is there and says nothing, before anything is asked of it."""
        try:
            await self._greet()
        except ServerLost:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._at_once.close()
        await self._client.aclose()

    @asynccontextmanager
    async def lines(
        self, method: str, path: str, content: str | None = None
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """What the server says, signs of life left out; leaving ends what was asked for.

        Raises what the server raised, or `ServerLost`.
        """
        url, headers = self._target(path)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._client.stream(method, url, content=content, headers=headers) as response:
                self._check(response)
                yield _said(response)
        except (httpx.HTTPError, OSError) as error:
            raise self.lost() from error

    def get(self, path: str) -> Any:
        """Waits in this thread, for milliseconds. Raises `ServerLost`."""
        url, headers = self._target(path)
        try:
            response = self._at_once.get(url, headers=headers)
            response.raise_for_status()
            return response.json()
        except (httpx.HTTPError, OSError, ValueError) as error:
            raise self.lost() from error

    async def _greet(self) -> None:
        url, headers = self._target("/snapshot")
        with suppress(
            httpx.HTTPError, OSError
        ):  # one that has ended is told of when something is asked of it
            try:
                await asyncio.wait_for(self._client.get(url, headers=headers), GREETING_S)
            except (TimeoutError, httpx.TimeoutException):
                pid = self._address.pid
                raise ServerLost(
                    f"The UNIUN server at {self._address.url} (process {pid}) does not answer. If it was stopped, let it go "
                    f"on with `kill -CONT {pid}`; else end it with `kill {pid}`, or `kill -9 {pid}` if it stays. Then start "
                    "this command again: without a server it loads the model itself."
                ) from None

    def lost(self) -> ServerLost:
        """What to tell the user when the connection breaks."""
        self._gone = True
        return ServerLost(
            f"The UNIUN server at {self._address.url}, whose model was used, has ended or does not answer. Start it again "
            "with `uniun serve`, or start this command again: without a server it loads the model itself."
        )

    def _target(self, path: str) -> tuple[str, dict[str, str]]:
        if self._gone:
            address = self._look()
            if address is None:
                raise self.lost()
            self._address, self._gone = address, False
        return f"{self._address.url}/internal{path}", {"Authorization": f"Bearer {self._address.secret}"}

    def _check(self, response: httpx.Response) -> None:
        if response.status_code == httpx.codes.OK:
            return
        raise EngineError(
            f"The UNIUN server at {self._address.url} refused the request ({response.status_code}). If it is of another "
            "version than this program, start it again."
        )


async def _said(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if len(line) > _MAX_LINE_CHARACTERS:
            raise EngineError("The UNIUN server said more in one piece than is taken.")
        said = json.loads(line) if line else {}
        if "error" in said:
            raise error_from_wire(said["error"])
        if said:
            yield said
        await asyncio.sleep(0)  # many lines in one piece must not keep others waiting
