"""Ids and times of new things."""

import secrets
import uuid
from datetime import datetime

from data.clock import Clock


class RandomIdentities:
    """Implements `Identities`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()


def new_secret() -> str:
    """256 random bits as text."""
    return secrets.token_urlsafe(32)
