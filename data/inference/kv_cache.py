"""Which sequences keep their KV state, and what is given up when memory or sequences run out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from data.inference.backend import Backend, Interrupted

_CHECK_EVERY_TOKENS = 64
"""While decoding, the budget is looked at this often; state grows by one token at a time."""


@dataclass(eq=False)
class Slot:
    """One kept sequence: `tokens` is exactly what its KV state holds."""

    sequence: int
    cache_key: str
    job_id: str | None
    """The job that runs on it or may resume on it; none when it is only a prefix for others."""
    used: int
    tokens: list[int] = field(default_factory=list)


class KvCache:
    """Keeps the state of stopped jobs and the prefixes of ended ones within a byte budget.

    Least recently used goes first, prefixes of ended jobs before the state of stopped ones. What was dropped is
    prefilled again, so dropping costs time and never a result.
    """

    def __init__(self, backend: Backend, budget_bytes: int) -> None:
        self._backend = backend
        self._budget_bytes = budget_bytes
        self._slots: list[Slot] = []
        self._uses = 0

    def take(self, job_id: str, cache_key: str, tokens: Sequence[int]) -> Slot:
        """A slot whose tokens are a beginning of `tokens`, at least one short of it: something must be evaluated."""
        slot = self._find(job_id, cache_key, tokens) or self._fresh()
        slot.job_id, slot.cache_key = job_id, cache_key
        self._uses += 1
        slot.used = self._uses
        self._cut(slot, min(common_prefix(slot.tokens, tokens), len(tokens) - 1))
        self._shrink(slot)
        return slot

    def evaluate(self, slot: Slot, tokens: Sequence[int], *, want_logits: bool) -> None:
        """Appends tokens to the slot. If the backend fails, the slot is dropped: state and tokens never disagree.

        Raises `Interrupted`, with the slot as it was.
        """
        try:
            self._backend.evaluate(slot.sequence, tokens, len(slot.tokens), want_logits=want_logits)
        except Interrupted:
            raise
        except BaseException:
            self._drop(slot)
            raise
        slot.tokens.extend(tokens)
        if len(tokens) > 1 or len(slot.tokens) % _CHECK_EVERY_TOKENS == 0:
            self._shrink(slot)

    def end(self, job_id: str) -> None:
        """The job will not resume: its state becomes a prefix for others."""
        for slot in self._slots:
            if slot.job_id == job_id:
                slot.job_id = None

    def drop(self, job_id: str) -> None:
        """The job failed: its state is not to be trusted."""
        for slot in [slot for slot in self._slots if slot.job_id == job_id]:
            self._drop(slot)

    def _find(self, job_id: str, cache_key: str, tokens: Sequence[int]) -> Slot | None:
        for slot in self._slots:
            if slot.job_id == job_id:
                return slot
        ended = [(common_prefix(slot.tokens, tokens), slot) for slot in self._slots if slot.job_id is None]
        own = [pair for pair in ended if pair[1].cache_key == cache_key]
        # A stranger's prefix is taken over only where that loses little of it.
        others = [pair for pair in ended if pair[0] > 0 and 2 * pair[0] >= len(pair[1].tokens)]
        found = max(own or others, key=lambda pair: pair[0], default=None)
        return found[1] if found else None

    def _fresh(self) -> Slot:
        if len(self._slots) >= self._backend.slots:
            self._drop(self._oldest(None))
        used = {slot.sequence for slot in self._slots}
        slot = Slot(next(at for at in range(self._backend.slots) if at not in used), "", None, 0)
        self._slots.append(slot)
        return slot

    def _cut(self, slot: Slot, tokens: int) -> None:
        if tokens == len(slot.tokens):
            return
        if tokens == 0 or not self._backend.trim(slot.sequence, tokens):
            self._backend.clear(slot.sequence)
            tokens = 0
        del slot.tokens[tokens:]

    def _shrink(self, running: Slot) -> None:
        while len(self._slots) > 1 and self._bytes() > self._budget_bytes:
            self._drop(self._oldest(running))

    def _bytes(self) -> int:
        return sum(self._backend.kv_bytes(slot.sequence) for slot in self._slots)

    def _oldest(self, running: Slot | None) -> Slot:
        others = [slot for slot in self._slots if slot is not running]
        return min(others, key=lambda slot: (slot.job_id is not None, slot.used))

    def _drop(self, slot: Slot) -> None:
        self._backend.clear(slot.sequence)
        self._slots.remove(slot)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common beginning."""
    size = min(len(left), len(right))
    if left[:size] == right[:size]:
        return size
    return next(at for at in range(size) if left[at] != right[at])
