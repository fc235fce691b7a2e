"""Connections that say nothing, too slowly, or do not listen."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 10.0
"""From the first byte, or from the connection on, until the headers of a request are there."""
UNREAD_S = 30.0
"""A client that reads nothing for so long while something waits for it is dropped; until then only a buffer waits."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with bounded patience. h11 bounds the headers too, which httptools does not. A request that is being answered, or whose body comes, is not timed here."""

    _headers_due: asyncio.TimerHandle | None = None
    _reading_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._headers_due = self.loop.call_later(HEADERS_S, self._drop)

    def data_received(self, data: bytes) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self._headers_due is None:
            self._headers_due = self.loop.call_later(HEADERS_S, self._drop)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting_for_headers()

    def handle_websocket_upgrade(self, event: object) -> None:
        self._stop_waiting_for_headers()
        super().handle_websocket_upgrade(event)  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting_for_headers()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading_due = self.loop.call_later(UNREAD_S, self._drop)

    def resume_writing(self) -> None:
        self._stop_waiting_for_reader()
        super().resume_writing()

    def _drop(self) -> None:
        """At once: closing would wait until everything is read."""
        self.transport.abort()

    def _stop_waiting_for_headers(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def _stop_waiting_for_reader(self) -> None:
        if self._reading_due is not None:
            self._reading_due.cancel()
            self._reading_due = None
