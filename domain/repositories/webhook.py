"""Telling another program what a Gana wrote."""

from collections.abc import Mapping
from typing import Protocol


class Webhook(Protocol):
    """Sends only to the address that the user gave."""

    async def post(self, url: str, body: Mapping[str, str]) -> None:
        """One JSON object by POST. Raises `WebhookFailed`."""
        ...
