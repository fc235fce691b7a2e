"""What one page changes is seen by the others: a small bus inside this process."""

from collections.abc import Awaitable, Callable
from typing import Literal

from nicegui import ui

Topic = Literal["conversations", "notes", "manases", "cards", "ganas", "models"]
Listener = Callable[[], Awaitable[None] | None]


class Changes:
    """Tells pages that something has changed; what it is now, they look up themselves."""

    def __init__(self) -> None:
        self._listeners: dict[Topic, list[Callable[[], None]]] = {}

    def on(self, topic: Topic, listener: Listener) -> None:
        """Calls `listener` in the context of the page that is being drawn, until that page is closed."""
        client = ui.context.client

        def call() -> None:
            client.safe_invoke(listener)

        listeners = self._listeners.setdefault(topic, [])
        listeners.append(call)
        client.on_delete(lambda: listeners.remove(call))

    def tell(self, topic: Topic) -> None:
        """Whoever changed it is told as well."""
        for listener in tuple(self._listeners.get(topic, ())):
            listener()

    def listeners(self, topic: Topic) -> int:
        """How many pages listen."""
        return len(self._listeners.get(topic, ()))
