"""API keys, kept as hashes."""

from typing import Protocol

from domain.entities.api import ApiKey


class ApiKeyRepository(Protocol):
    """A few at most; names are unique."""

    async def add(self, key: ApiKey) -> bool:
        """False, and nothing is added, when there is one of this name."""
        ...

    async def list(self) -> tuple[ApiKey, ...]:
        """Oldest first."""
        ...

    async def by_hash(self, key_hash: str) -> ApiKey | None:
        """Looked up at each request, so that a revoked key is refused at once, whoever revoked it."""
        ...

    async def delete(self, key_id: str) -> None:
        """Harmless when it is gone."""
        ...
