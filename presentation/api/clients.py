"""Who asks: from a request's key and address."""

from fastapi import Request

from domain.entities.api import ApiClient
from presentation.controllers.api import ApiController


class Clients:
    """A FastAPI dependency. Whether a key is needed at all, the server has decided before."""

    def __init__(self, api: ApiController) -> None:
        self._api = api

    async def __call__(self, request: Request) -> ApiClient:
        """Raises `KeyRefused`."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        return await self._api.client(
            key.strip() if scheme.lower() == "bearer" else None,
            request.client.host if request.client else "",
            request.headers.get("user-agent", ""),
        )
