"""Several servers for one model: the least loaded of those that work."""

import random
from collections import OrderedDict
from collections.abc import Mapping

import httpx

from data.clock import Clock
from data.inference.remote.server import CONNECT_S, SILENCE_S, Server
from domain.entities.models import RemoteModel
from domain.errors import InvalidRequest

KEPT_KEYS = 10_000
"""Conversations of which it is remembered which server has read them."""


class ServerPool:
    """Owns the connections."""

    def __init__(
        self,
        remote: RemoteModel,
        clock: Clock,
        environment: Mapping[str, str],
        chance: random.Random,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._remote = remote
        self._environment = environment
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
            # A connection each: several servers, and streams that are cut off.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
            follow_redirects=False,
            trust_env=False,
            transport=transport,
        )
        self.servers = [Server(url, remote.model, self._client, clock, chance) for url in remote.urls]
        self._last: OrderedDict[str, Server] = OrderedDict()

    def authorise(self) -> None:
        """Reads the key, which may have changed. Raises `InvalidRequest` if its variable is not set."""
        variable = self._remote.key_variable
        if variable is None:
            return
        key = self._environment.get(variable, "").strip()
        if not key:
            raise InvalidRequest(
                f"The key for the model {self._remote.model} is missing: set the environment variable {variable}."
            )
        self._client.headers["Authorization"] = f"Bearer {key}"

    def choose(self, cache_key: str, *, but: Server | None = None) -> tuple[Server, float]:
        """A server, and how long to wait before asking it. `but` has just failed and is taken last.

        Of those that may be asked now the one with the least to do; of equals the one that knows the conversation.
        """
        known = self._last.get(cache_key)

        def key(server: Server) -> tuple[float, bool, int, bool]:
            return (server.rests_s(), server is but, server.active, server is not known)

        best = min(self.servers, key=key)
        return best, best.rests_s()

    def used(self, server: Server, cache_key: str) -> None:
        """The server has read this conversation."""
        self._last[cache_key] = server
        self._last.move_to_end(cache_key)
        if len(self._last) > KEPT_KEYS:
            self._last.popitem(last=False)

    async def aclose(self) -> None:
        await self._client.aclose()
