"""All vectors in memory, brought up to date from the table before each search.

Exact search: every vector is compared. See docs/adr/0009-vector-search.md for why no approximate index is used.
"""

import threading
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session, col, select

from data.database.tables.notes import CounterRow, VectorRow
from domain.errors import InvalidRequest

_FIRST_ROWS = 256
_TYPE = np.dtype("<f4")


def packed(vector: Sequence[float]) -> bytes:
    """A vector as it is stored: little-endian float32, of length 1. Raises `InvalidRequest` if it has no direction."""
    return _unit(vector).tobytes()


class VectorIndex:
    """Rows of a matrix that grows by doubling; the last row takes the place of one that goes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = 0
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._matrix: NDArray[np.float32] = np.empty((0, 0), dtype=_TYPE)

    def catch_up(self, session: Session) -> None:
        """Takes in what this and other processes have written since the last time."""
        newest = session.exec(select(CounterRow.value).where(CounterRow.name == "vectors")).one()
        with self._lock:
            if newest <= self._seen:
                return
            rows = (
                session.connection()
                .execution_options(yield_per=1_000)
                .execute(
                    select(VectorRow.note_id, VectorRow.vector)
                    .where(VectorRow.version > self._seen)
                    .order_by(col(VectorRow.version))
                )
            )
            for note_id, data in rows:
                if data is None:
                    self._remove(note_id)
                else:
                    self._put(note_id, np.frombuffer(data, dtype=_TYPE))
            self._seen = newest

    def nearest(
        self, vector: Sequence[float], *, within: Collection[str] | None, limit: int
    ) -> tuple[tuple[str, float], ...]:
        """(note id, cosine), best first; only of `within`, unless it is none."""
        query = _unit(vector)
        with self._lock:
            count = len(self._ids)
            if count == 0 or limit < 1 or self._matrix.shape[1] != query.size:
                return ()
            rows = np.arange(count)
            if within is not None:
                rows = np.array(
                    sorted(self._row_of[one] for one in within if one in self._row_of), dtype=np.intp
                )
            # Copying rows costs more than multiplying them, unless they are few.
            few = len(rows) < count // 4
            cosines = self._matrix[rows] @ query if few else (self._matrix[:count] @ query)[rows]
            if limit < len(rows):
                best = np.argpartition(-cosines, limit)[:limit]
                rows, cosines = rows[best], cosines[best]
            ranked = sorted(
                zip((self._ids[row] for row in rows), cosines.tolist(), strict=True),
                key=lambda one: (-one[1], one[0]),
            )
            return tuple((note_id, max(-1.0, min(1.0, cosine))) for note_id, cosine in ranked)

    def _put(self, note_id: str, vector: NDArray[np.float32]) -> None:
        row = self._row_of.get(note_id)
        if row is None:
            row = len(self._ids)
            self._grow(row, vector.size)
            if self._matrix.shape[1] != vector.size:
                return  # of another embedder: not comparable
            self._ids.append(note_id)
            self._row_of[note_id] = row
        if self._matrix.shape[1] == vector.size:
            self._matrix[row] = vector

    def _grow(self, rows: int, size: int) -> None:
        if rows == 0:
            self._matrix = np.empty((_FIRST_ROWS, size), dtype=_TYPE)
        elif rows == len(self._matrix):
            larger = np.empty((2 * rows, self._matrix.shape[1]), dtype=_TYPE)
            larger[:rows] = self._matrix
            self._matrix = larger

    def _remove(self, note_id: str) -> None:
        row = self._row_of.pop(note_id, None)
        if row is None:
            return
        last = self._ids.pop()
        if last != note_id:
            self._ids[row] = last
            self._row_of[last] = row
            self._matrix[row] = self._matrix[len(self._ids)]


def _unit(vector: Sequence[float]) -> NDArray[np.float32]:
    array = np.asarray(vector, dtype=_TYPE)
    length = float(np.linalg.norm(array))
    if not np.isfinite(length) or length == 0.0:
        raise InvalidRequest("A vector must have finite numbers, not all of them zero.")
    return (array / length).astype(_TYPE)
