"""A PostgreSQL server that does not answer: a machine that was suspended, or a network that swallows what is sent.

The driver waits without end for an answer. Here it gives a silent server up, so that every transaction ends.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, event

from data.clock import SystemClock

if TYPE_CHECKING:
    import psycopg

_CONNECT_S = 10
IDLE_MS = 60_000
"""After so long without a word from a client in mid-transaction the server ends it: it holds the lock of all writers, and
its machine may be asleep or out of the network."""


def bound(engine: Engine, patience_s: Callable[[], float | None]) -> None:
    """Ends what waits for longer than this on a server that says nothing; none is without end.

    The connection is then closed, and what waited on it ends with the driver's `OperationalError`.
    """
    if engine.dialect.driver != "psycopg":
        return

    @event.listens_for(engine, "do_connect")
    def connect(dialect: object, record: object, arguments: Any, options: dict[str, Any]) -> Any:
        connection = _connection_class().connect(*arguments, **{"connect_timeout": _CONNECT_S, **options})
        connection.patience_s = patience_s
        return connection


@functools.cache
def _connection_class() -> Any:
    """Made when it is first needed: the driver is not always installed."""
    import psycopg

    class Connection(psycopg.Connection[Any]):
        patience_s: Callable[[], float | None] = staticmethod(lambda: None)

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            return super().wait(_until_silent(self, gen), *arguments, **options)

    return Connection


def _until_silent(connection: Any, gen: Any) -> Any:
    """Passes on what `gen` waits for. The driver looks in many times a second, also when nothing has come."""
    clock = SystemClock()
    heard_at = clock.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                heard_at = clock.monotonic()
            else:
                _give_up_if_silent(connection, clock.monotonic() - heard_at)
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def _give_up_if_silent(connection: "psycopg.Connection[Any]", silent_s: float) -> None:
    import psycopg

    patience_s = connection.patience_s()  # type: ignore[attr-defined]
    if patience_s is not None and silent_s > patience_s:
        connection.close()
        raise psycopg.OperationalError(
            f"its server has not answered for {silent_s:.0f} s; what it was told last, it may still do"
        )
