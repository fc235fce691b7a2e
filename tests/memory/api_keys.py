"""API keys in a dictionary."""

from domain.entities.api import ApiKey


class MemoryApiKeys:
    """Implements `ApiKeyRepository`."""

    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}

    async def add(self, key: ApiKey) -> bool:
        if any(key.name == other.name or key.hash == other.hash for other in self._keys.values()):
            return False
        self._keys[key.id] = key
        return True

    async def list(self) -> tuple[ApiKey, ...]:
        return tuple(self._keys.values())

    async def by_hash(self, hash: str) -> ApiKey | None:
        return next((key for key in self._keys.values() if key.hash == hash), None)

    async def delete(self, key_id: str) -> None:
        self._keys.pop(key_id, None)
