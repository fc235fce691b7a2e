"""A binary heap that can also remove and re-key any of its items."""

import heapq
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class IndexedHeap(Generic[T]):
    """Smallest key first; all operations but iteration are O(log n) or better.

    Keys of one heap must be totally ordered and distinct (end them with an arrival number), so that the order never
    depends on anything but the keys. Items are told apart by identity of their hash.
    """

    __slots__ = ("_heap", "_index")

    def __init__(self) -> None:
        self._heap: list[tuple[Any, T]] = []
        self._index: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, item: T) -> bool:
        return item in self._index

    def __iter__(self) -> Iterator[T]:
        """In no particular order."""
        return iter(self._index)

    def ordered(self) -> Iterator[T]:
        """Smallest key first, O(log k) for the k-th; nothing may be changed meanwhile."""
        heap = self._heap
        frontier = [(heap[0][0], 0)] if heap else []
        while frontier:
            _, at = heapq.heappop(frontier)
            yield heap[at][1]
            for child in range(2 * at + 1, min(2 * at + 3, len(heap))):
                heapq.heappush(frontier, (heap[child][0], child))

    def first(self) -> T | None:
        """The item with the smallest key."""
        return self._heap[0][1] if self._heap else None

    def first_key(self) -> Any:
        """Its key; the heap must not be empty."""
        return self._heap[0][0]

    def second(self) -> T | None:
        """The item that would be first without the first."""
        heap = self._heap
        if len(heap) < 2:
            return None
        if len(heap) == 2 or heap[1][0] < heap[2][0]:
            return heap[1][1]
        return heap[2][1]

    def push(self, item: T, key: Any) -> None:
        """Adds the item, or gives it a new key."""
        at = self._index.get(item)
        if at is None:
            at = len(self._heap)
            self._heap.append((key, item))
            self._index[item] = at
            self._up(at)
        else:
            old = self._heap[at][0]
            self._heap[at] = (key, item)
            if key < old:
                self._up(at)
            else:
                self._down(at)

    def discard(self, item: T) -> None:
        """Removes the item if it is there."""
        at = self._index.pop(item, None)
        if at is None:
            return
        last = self._heap.pop()
        if at == len(self._heap):
            return
        self._heap[at] = last
        self._index[last[1]] = at
        self._up(at)
        self._down(self._index[last[1]])

    def _up(self, at: int) -> None:
        heap, index = self._heap, self._index
        entry = heap[at]
        while at:
            parent = (at - 1) >> 1
            if not entry[0] < heap[parent][0]:
                break
            heap[at] = heap[parent]
            index[heap[at][1]] = at
            at = parent
        heap[at] = entry
        index[entry[1]] = at

    def _down(self, at: int) -> None:
        heap, index = self._heap, self._index
        entry = heap[at]
        size = len(heap)
        while (child := 2 * at + 1) < size:
            if child + 1 < size and heap[child + 1][0] < heap[child][0]:
                child += 1
            if not heap[child][0] < entry[0]:
                break
            heap[at] = heap[child]
            index[heap[at][1]] = at
            at = child
        heap[at] = entry
        index[entry[1]] = at
