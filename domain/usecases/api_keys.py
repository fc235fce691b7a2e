"""Keys for other programs: made, listed, revoked, and looked at when one is presented."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from math import ceil

from pydantic import ValidationError

from domain.entities.api import ApiClient, ApiKey
from domain.errors import InvalidRequest, KeyNotFound, KeyRefused, RateLimited
from domain.reasons import plain_reason
from domain.repositories.api_keys import ApiKeyRepository
from domain.repositories.identity import Identities

PREFIX = "uniun-"
"""A key of ours is told by it from what clients send because they must send something."""
MAX_KEYS = 1_000


class CreateApiKeyUseCase:
    """Makes a key. It is shown this once; what is kept cannot be turned back into it."""

    def __init__(self, keys: ApiKeyRepository, identities: Identities, new_secret: Callable[[], str]) -> None:
        self._keys = keys
        self._identities = identities
        self._new_secret = new_secret

    async def __call__(
        self, name: str, *, kind: str = "api", weight: float = 1.0, per_minute: int | None = None
    ) -> tuple[ApiKey, str]:
        """The key as it is kept, and its text. Raises `InvalidRequest`."""
        text = PREFIX + self._new_secret()
        fields = {"name": name.strip(), "kind": kind, "weight": weight, "per_minute": per_minute}
        try:
            key = ApiKey.model_validate(
                {
                    "id": self._identities.new_id(),
                    "hash": key_hash(text),
                    "created_at": self._identities.now(),
                    **fields,
                }
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InvalidRequest(
                f"The key's {first['loc'][0]} is wrong: {plain_reason(first['msg'])}."
            ) from None
        if len(await self._keys.list()) >= MAX_KEYS:
            raise InvalidRequest(
                f"There are {MAX_KEYS} keys already. Revoke one with: uniun keys revoke NAME"
            )
        if not await self._keys.add(key):
            raise InvalidRequest(f"There is a key called {key.name} already. Choose another name.")
        return key, text


class ListApiKeysUseCase:
    """All that are valid."""

    def __init__(self, keys: ApiKeyRepository) -> None:
        self._keys = keys

    async def __call__(self) -> tuple[ApiKey, ...]:
        """Oldest first."""
        return await self._keys.list()


class RevokeApiKeyUseCase:
    """Makes a key worthless from its next request on."""

    def __init__(self, keys: ApiKeyRepository) -> None:
        self._keys = keys

    async def __call__(self, reference: str) -> ApiKey:
        """By name or the beginning of an id. Raises `KeyNotFound`."""
        key = await self.find(reference)
        await self._keys.delete(key.id)
        return key

    async def find(self, reference: str) -> ApiKey:
        """The one that would be revoked. Raises `KeyNotFound`."""
        known = await self._keys.list()
        found = [key for key in known if key.name == reference] or [
            key for key in known if len(reference) >= 4 and key.id.startswith(reference)
        ]
        if len(found) != 1:
            raise KeyNotFound(
                f"{'No' if not found else 'More than one'} key is called {reference!r}. See: uniun keys list"
            )
        return found[0]


class IdentifyClientUseCase:
    """Says who presents a key, and holds it to its rate. One for all requests, since it remembers them."""

    def __init__(self, keys: ApiKeyRepository, identities: Identities) -> None:
        self._keys = keys
        self._identities = identities
        self._allowances: dict[str, tuple[float, datetime]] = {}
        """Requests left of each key with a limit, and when that was so (a token bucket)."""

    async def fits(self, presented: str) -> bool:
        """Whether this is a key that is valid now."""
        return presented.startswith(PREFIX) and await self._keys.by_hash(key_hash(presented)) is not None

    async def __call__(self, presented: str | None, address: str, agent: str) -> ApiClient:
        """Whether a key is needed is decided before, by the server. What a client sends that is no key of ours is
        ignored: OpenAI's clients must be given something to send.

        Raises `KeyRefused`; `spend` is for requests that cost something.
        """
        client = ApiClient(address=address[:60], agent=_first_word(agent))
        if presented is not None and presented.startswith(PREFIX):
            key = await self._keys.by_hash(key_hash(presented))
            if key is None:
                raise KeyRefused(
                    "This API key is unknown or was revoked. Make one with: uniun keys create NAME"
                )
            return client.model_copy(update={"key": key})
        return client

    def spend(self, client: ApiClient) -> None:
        """One request more. Raises `RateLimited`."""
        key = client.key
        if key is None or key.per_minute is None:
            return
        now = self._identities.now()
        left, at = self._allowances.get(key.id, (float(key.per_minute), now))
        passed = max(timedelta(0), now - at) / timedelta(minutes=1)
        left = min(float(key.per_minute), left + passed * key.per_minute)
        # The sixth decimal is below the clock's microseconds: noise must neither refuse nor cost a second more.
        wait_s = round((1 - left) * 60 / key.per_minute, 6)
        if wait_s > 0:
            self._allowances[key.id] = (left, now)
            raise RateLimited(
                f"The key {key.name} allows {key.per_minute} requests a minute. Wait {max(1, ceil(wait_s))} s.",
                wait_s,
            )
        if len(self._allowances) >= MAX_KEYS:
            self._allowances.clear()
        self._allowances[key.id] = (left - 1, now)


def key_hash(text: str) -> str:
    """A key is 256 random bits, which nobody guesses: a slow hash, meant for passwords, would protect nothing more."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _first_word(agent: str) -> str:
    """Program and version; the rest differs between two requests of the same program on some systems."""
    return agent.split(" ", 1)[0][:100] if agent.isprintable() else ""
