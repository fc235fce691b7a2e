"""Which sequences keep their KV state, and what is given up when memory or sequences run out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from data.inference.backend import Backend, Interrupted
from data.inference.batches import Batches
from data.inference.prefill import ALIGN
from domain.errors import EngineError

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
    batches: Batches = field(default_factory=Batches)
    """In which `tokens` were evaluated, and beyond them those of a job whose state was lost and that is to be the same."""


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

    def take(self, job_id: str, cache_key: str, tokens: Sequence[int], lost: Batches | None = None) -> Slot:
        """A slot whose tokens are a beginning of `tokens`, at least one short of it: something must be evaluated.

        A job that ran before and finds its state gone makes it anew in the batches that it was made in, `lost`.
        """
        slot = self._of_job(job_id)
        if slot is not None:
            self._cut(slot, min(common_prefix(slot.tokens, tokens), len(tokens) - 1))
        elif lost is not None and lost.tokens > 0 and self._can_repeat(lost):
            slot = self._fresh()
            slot.batches = Batches(lost.until(len(tokens) - 1))
        elif (slot := self._prefix(cache_key, tokens)) is not None:
            kept = common_prefix(slot.tokens, tokens)
            if kept == len(tokens):
                kept = self._before_the_last(slot, kept)
            self._cut(slot, kept if slot.cache_key == cache_key else self._reusable(slot, tokens, kept))
        else:
            slot = self._fresh()
        slot.job_id, slot.cache_key = job_id, cache_key
        self._uses += 1
        slot.used = self._uses
        self._shrink(slot)
        return slot

    def holds(self, job_id: str) -> bool:
        return self._of_job(job_id) is not None

    def evaluate(self, slot: Slot, tokens: Sequence[int], *, want_logits: bool) -> None:
        """Appends tokens to the slot. If the backend fails, the slot is dropped: state and tokens never disagree.

        Raises `Interrupted`, with the slot as it was.
        """
        held = len(slot.tokens)
        known = slot.batches.at(held)
        surplus = known[0] - len(tokens) if known else 0
        try:
            # Tokens of a batch do not see those behind them, so any may stand for the ones that were cut off.
            batch = [*tokens, *[tokens[-1]] * surplus]
            self._backend.evaluate(slot.sequence, batch, held, want_logits=want_logits)
            if surplus and not self._backend.trim(slot.sequence, held + len(tokens)):
                raise EngineError("A state that cannot be cut was to be made from a part of a batch.")
        except Interrupted:
            raise
        except BaseException:
            self._drop(slot)
            raise
        slot.tokens.extend(tokens)
        if known is None:
            slot.batches.append(len(tokens))
        if len(tokens) > 1 or len(slot.tokens) % _CHECK_EVERY_TOKENS == 0:
            self._shrink(slot)

    def end(self, job_id: str) -> None:
        """The job will not resume: its state becomes a prefix for others."""
        for slot in self._slots:
            if slot.job_id == job_id:
                slot.job_id = None
                slot.batches = Batches(slot.batches.until(len(slot.tokens)))

    def drop(self, job_id: str) -> None:
        """The job failed: its state is not to be trusted."""
        for slot in [slot for slot in self._slots if slot.job_id == job_id]:
            self._drop(slot)

    def _of_job(self, job_id: str) -> Slot | None:
        return next((slot for slot in self._slots if slot.job_id == job_id), None)

    def _prefix(self, cache_key: str, tokens: Sequence[int]) -> Slot | None:
        ended = [(common_prefix(slot.tokens, tokens), slot) for slot in self._slots if slot.job_id is None]
        own = [pair for pair in ended if pair[1].cache_key == cache_key]
        # A stranger's prefix is taken over only where that loses little of it.
        others = [pair for pair in ended if pair[0] > 0 and 2 * pair[0] >= len(pair[1].tokens)]
        found = max(own or others, key=lambda pair: pair[0], default=None)
        return found[1] if found else None

    def _can_repeat(self, batches: Batches) -> bool:
        """Not if the engine has other settings now, or is another one, or if it would take too long."""
        backend = self._backend
        return batches.fit(backend.least_chunk + backend.most_chunk - 1, backend.context_tokens)

    def _before_the_last(self, slot: Slot, tokens: int) -> int:
        """How many of so many tokens to keep, for a prompt that ends there and was read before: its last token is evaluated
        as it was then, so that the same question has the same answer."""
        begin = slot.batches.begin(tokens - 1)
        return max(begin, (tokens - self._backend.least_chunk) // ALIGN * ALIGN)

    def _reusable(self, slot: Slot, tokens: Sequence[int], common: int) -> int:
        """How many of a stranger's tokens, of which so many are common.

        Of what was read for another prompt some may be read again, so that the state is as if this prompt had been read
        whole: in chunks of the same kind that begin where they could have begun. What an answer has added token by
        token stays as it is, with what is before it.
        """
        ahead, least = len(tokens) - self._backend.last_alone, self._backend.least_chunk
        runs = slot.batches.until(common)
        if runs[-1:] == [(1, 1)]:  # the last of that prompt, which was evaluated by itself
            runs.pop()
        sizes = [size for size, _ in runs]
        if 1 in sizes:
            return common
        large = ahead >= least
        if not sizes or (min(sizes) >= least) != large:
            return 0
        read = sum(held for _, held in runs)
        return max(0, min(read, ahead - (least if large else ALIGN))) // ALIGN * ALIGN

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
        slot.batches = Batches(slot.batches.until(tokens))

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
