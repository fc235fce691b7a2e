"""Who may run on one model, in the orders in which they may be chosen."""

from data.scheduling.heap import IndexedHeap
from data.scheduling.jobs import Job
from data.scheduling.turns import Served, TurnQueue


class ModelQueue:
    """Live jobs of one target model, except where the fair pool keeps them."""

    def __init__(self, served: Served) -> None:
        self.hinted = TurnQueue(served)
        self.hinted_waits: IndexedHeap[Job] = IndexedHeap()
        self.extract: IndexedHeap[Job] = IndexedHeap()
        self.ahead: IndexedHeap[Job] = IndexedHeap()
        """Chats' prompts that are read ahead; what is left of them when their hint has ended."""
        self.overdue: IndexedHeap[Job] = IndexedHeap()
        self.waits: IndexedHeap[Job] = IndexedHeap()
        """All but chats, longest wait first."""
