"""Flows that take turns: the least recently served first, and inside a flow the lowest rank, then the oldest job."""

from data.scheduling.heap import IndexedHeap
from data.scheduling.jobs import FlowKey, Job

KEEP_FLOWS = 10_000


class Served:
    """When each flow last had a job of its end: a serial number, 0 for never. Shared by all queues of turns."""

    def __init__(self) -> None:
        self._last: dict[FlowKey, int] = {}
        self._serial = 0

    def last(self, key: FlowKey) -> int:
        return self._last.get(key, 0)

    def mark(self, key: FlowKey) -> None:
        self._serial += 1
        self._last.pop(key, None)
        self._last[key] = self._serial
        if len(self._last) > KEEP_FLOWS:
            del self._last[next(iter(self._last))]


class TurnQueue:
    """Jobs by flow. All operations are O(log n)."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._flows: IndexedHeap[FlowKey] = IndexedHeap()
        self._jobs: dict[FlowKey, IndexedHeap[Job]] = {}

    def __len__(self) -> int:
        return len(self._flows)

    def add(self, job: Job) -> None:
        self._jobs.setdefault(job.flow_key, IndexedHeap()).push(job, (job.spec.rank, job.arrival))
        self.reorder(job.flow_key)

    def discard(self, job: Job) -> None:
        heap = self._jobs.get(job.flow_key)
        if heap is None:
            return
        heap.discard(job)
        if not heap:
            del self._jobs[job.flow_key]
        self.reorder(job.flow_key)

    def reorder(self, key: FlowKey) -> None:
        """The flow was served, or its first job changed."""
        head = self._jobs[key].first() if key in self._jobs else None
        if head is not None:
            self._flows.push(key, (self._served.last(key), head.arrival))
        else:
            self._flows.discard(key)

    def first(self) -> Job | None:
        key = self._flows.first()
        return self._jobs[key].first() if key is not None else None

    def first_of(self, key: FlowKey) -> Job | None:
        """The first job of one flow."""
        heap = self._jobs.get(key)
        return heap.first() if heap else None
