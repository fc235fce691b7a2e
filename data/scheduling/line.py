"""Who is live, by what decides a tier: so that counting a queue, or looking at its head, does not look at every job."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from data.scheduling.heap import IndexedHeap
from data.scheduling.jobs import FlowKey, Job
from domain.entities.llm import LlmTaskKind


class Sort(NamedTuple):
    """Jobs of one sort are of one tier, as long as nobody looks at one of their flows or waits for one of them."""

    kind: LlmTaskKind
    model: str
    """Of the lead."""
    hinted: bool
    overdue: bool
    ahead: bool

    @property
    def by_turns(self) -> bool:
        """Whether a flow's jobs go by rank, then arrival; else by deadline or by arrival alone."""
        return self.hinted or not (self.overdue or self.ahead or self.kind is LlmTaskKind.EXTRACT)


class Line:
    """All operations but iteration are O(log n). A job may change only while it is out of here."""

    def __init__(self) -> None:
        self.counts: Counter[Sort] = Counter()
        self.sorts: dict[Sort, dict[FlowKey, IndexedHeap[Job]]] = {}
        self.blocked: dict[Job, None] = {}
        """Those that wait for another job."""
        self.begun: dict[Job, None] = {}
        """Those that have had the device."""
        self._sorts: dict[Job, Sort] = {}

    def add(self, job: Job) -> None:
        """As it is now."""
        sort = Sort(job.kind, job.lead.model, job.hinted, job.overdue, job.spec.ahead)
        heap = self.sorts.setdefault(sort, {}).setdefault(job.flow_key, IndexedHeap())
        if sort.by_turns:
            heap.push(job, (job.spec.rank, job.arrival))
        else:
            heap.push(job, (job.deadline if sort.overdue else 0.0, job.arrival))
        self.counts[sort] += 1
        self._sorts[job] = sort
        if job.blocked_on is not None:
            self.blocked[job] = None
        if job.service_s:
            self.begun[job] = None

    def discard(self, job: Job) -> None:
        """Harmless when it is not here."""
        sort = self._sorts.pop(job, None)
        if sort is None:
            return
        self.blocked.pop(job, None)
        self.begun.pop(job, None)
        flows = self.sorts[sort]
        flows[job.flow_key].discard(job)
        if not flows[job.flow_key]:
            del flows[job.flow_key]
        self.counts[sort] -= 1
        if not self.counts[sort]:
            del self.counts[sort], self.sorts[sort]

    def leads(self) -> Iterator[Job]:
        """Jobs that others wait for."""
        return iter(dict.fromkeys(job.blocked_on for job in self.blocked if job.blocked_on is not None))
