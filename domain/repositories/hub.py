"""The hub that larger models come from."""

from typing import Protocol


class ModelHub(Protocol):
    """Only whether it is there; fetching is the model store's."""

    async def answers(self) -> bool:
        """Within a few seconds, and without an error whatever happens."""
        ...
