from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from data.inference.backend import Interrupted, Vocabulary
from data.inference.batches import Batches
from data.inference.kv_cache import KvCache, Slot, common_prefix
from domain.entities.llm import Sampling


class Ledger:
    """A back-end that only keeps what it was told to hold; 10 bytes a token."""

    name = "ledger"
    context_tokens = 1000
    most_chunk = 512
    interruptible = True

    def __init__(self, slots: int = 4, *, trims: bool = True, least_chunk: int = 1) -> None:
        self.least_chunk = least_chunk
        self.last_alone = False
        self.vocabulary = Vocabulary(
            9, lambda token: b"", {}, frozenset(), lambda text, special: [], None, None
        )
        self.slots = slots
        self.trims = trims
        self.fails = False
        self.interrupts = False
        self.held: dict[int, list[int]] = {}
        self.evaluated: list[int] = []

    def arm(self) -> None:
        self.interrupts = False

    def interrupt(self) -> None:
        self.interrupts = True

    def evaluate(self, sequence: int, tokens: Sequence[int], position: int, *, want_logits: bool) -> None:
        held = self.held.setdefault(sequence, [])
        assert len(held) == position
        if self.interrupts:
            raise Interrupted
        held.extend(tokens)
        self.evaluated.append(len(tokens))
        if self.fails:
            raise RuntimeError("the device is on fire")

    def sample(self, sampling: Sampling, position: int) -> int:
        return 0

    def logits(self) -> NDArray[np.float32]:
        return np.zeros(9, np.float32)

    def trim(self, sequence: int, tokens: int) -> bool:
        if self.trims:
            del self.held[sequence][tokens:]
        return self.trims

    def clear(self, sequence: int) -> None:
        self.held.pop(sequence, None)

    def kv_bytes(self, sequence: int) -> int:
        return 10 * len(self.held.get(sequence, ()))

    def close(self) -> None:
        self.held.clear()


def run(kv: KvCache, job: str, tokens: list[int], key: str | None = None) -> int:
    """Evaluates what is missing; how many tokens were there already."""
    slot = kv.take(job, key or job, tokens)
    kept = len(slot.tokens)
    kv.evaluate(slot, tokens[kept:], want_logits=True)
    return kept


A, B, C = list(range(100, 120)), list(range(200, 220)), list(range(300, 320))


def test_a_stopped_job_finds_its_state() -> None:
    kv = KvCache(Ledger(), 10_000)
    run(kv, "a", A)
    run(kv, "b", B)
    assert run(kv, "a", [*A, 1]) == 20


def test_one_token_is_always_left_to_evaluate() -> None:
    kv = KvCache(Ledger(), 10_000)
    run(kv, "a", A)
    assert run(kv, "a", A) == 19


def test_the_oldest_is_dropped_first_when_the_budget_is_spent() -> None:
    kv = KvCache(Ledger(), 450)
    run(kv, "a", A)
    run(kv, "b", B)
    run(kv, "c", C)
    assert run(kv, "b", [*B, 1]) == 20
    assert run(kv, "a", [*A, 1]) == 0


def test_prefixes_of_ended_jobs_go_before_the_state_of_stopped_ones() -> None:
    kv = KvCache(Ledger(), 450)
    run(kv, "a", A)
    run(kv, "b", B)
    kv.end("b")
    run(kv, "c", C)
    assert run(kv, "a", [*A, 1]) == 20


def test_sequences_are_limited_too() -> None:
    kv = KvCache(Ledger(slots=2), 10_000)
    for job, tokens in (("a", A), ("b", B), ("c", C)):
        run(kv, job, tokens)
    assert run(kv, "b", [*B, 1]) == 20
    assert run(kv, "a", [*A, 1]) == 0


def test_the_running_job_may_exceed_the_budget_alone() -> None:
    ledger = Ledger()
    kv = KvCache(ledger, 50)
    run(kv, "a", A)
    run(kv, "b", B)
    assert list(ledger.held.values()) == [B]


def test_the_next_turn_takes_over_its_conversation_up_to_where_it_differs() -> None:
    kv = KvCache(Ledger(), 10_000)
    run(kv, "turn-1", A, "talk")
    kv.end("turn-1")
    assert run(kv, "turn-2", [*A[:16], 7, 8, 9], "talk") == 16


def test_a_stranger_takes_over_a_prefix_only_where_little_of_it_is_lost() -> None:
    kv = KvCache(Ledger(), 10_000)
    run(kv, "a", A)
    kv.end("a")
    assert run(kv, "b", [*A[:5], *B]) == 0
    assert run(kv, "c", [*A[:16], *C]) == 16


def test_a_stopped_jobs_state_is_nobody_elses() -> None:
    kv = KvCache(Ledger(), 10_000)
    run(kv, "a", A, "talk")
    assert run(kv, "b", [*A, 1], "talk") == 0


def test_state_that_cannot_be_trimmed_is_kept_whole_or_prefilled_again() -> None:
    kv = KvCache(Ledger(trims=False), 10_000)
    run(kv, "a", A, "talk")
    kv.end("a")
    assert run(kv, "b", [*A, 1], "talk") == 20
    kv.end("b")
    assert run(kv, "c", [*A[:10], 2], "talk") == 0


def test_a_failure_drops_the_state_so_that_it_never_disagrees_with_the_tokens() -> None:
    ledger = Ledger()
    kv = KvCache(ledger, 10_000)
    run(kv, "a", A)
    ledger.fails = True
    with pytest.raises(RuntimeError):
        run(kv, "a", [*A, 1])
    ledger.fails = False
    assert ledger.held == {}
    assert run(kv, "a", [*A, 1]) == 0


STEPS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 2),
        st.lists(st.integers(0, 2), min_size=1, max_size=30),
        st.booleans(),
    )
)


@given(STEPS, st.integers(10, 900), st.booleans())
def test_tokens_and_state_agree_whatever_happens(
    steps: list[tuple[int, int, list[int], bool]], budget_bytes: int, trims: bool
) -> None:
    ledger = Ledger(slots=3, trims=trims)
    kv = KvCache(ledger, budget_bytes)
    for job, key, tokens, ends in steps:
        slot: Slot = kv.take(f"job-{job}", f"key-{key}", tokens)
        assert slot.tokens == tokens[: len(slot.tokens)]
        assert len(slot.tokens) < len(tokens)
        kv.evaluate(slot, tokens[len(slot.tokens) :], want_logits=True)
        assert ledger.held[slot.sequence] == slot.tokens == tokens
        # Single tokens are added up only now and then.
        assert sum(map(ledger.kv_bytes, ledger.held)) <= max(budget_bytes + 640, 10 * len(tokens))
        if ends:
            kv.end(f"job-{job}")


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_prefix(left: list[int], right: list[int]) -> None:
    size = common_prefix(left, right)
    assert left[:size] == right[:size]
    assert left[size : size + 1] != right[size : size + 1] or size == len(left) == len(right)


def test_an_interrupted_evaluation_leaves_the_slot_as_it_was() -> None:
    backend = Ledger()
    kv = KvCache(backend, 1 << 20)
    slot = kv.take("a", "a", [1, 2, 3, 4])
    kv.evaluate(slot, [1, 2], want_logits=False)
    backend.interrupt()
    with pytest.raises(Interrupted):
        kv.evaluate(slot, [3, 4], want_logits=False)
    backend.arm()
    assert slot.tokens == backend.held[slot.sequence] == [1, 2]
    kv.evaluate(slot, [3, 4], want_logits=True)
    assert kv.take("a", "a", [1, 2, 3, 4, 5]) is slot


def read(kv: KvCache, slot: Slot, tokens: Sequence[int], *sizes: int) -> None:
    """In batches of these sizes, from where the slot is."""
    for size in sizes:
        held = len(slot.tokens)
        kv.evaluate(slot, tokens[held : held + size], want_logits=False)


LONG = list(range(400))


@pytest.mark.parametrize(
    ("before", "prompt", "kept"),
    [
        ([96], LONG[:200], 96),
        ([100], LONG[:200], 96),  # tokens are computed eight together
        ([128, 72], LONG[:230], 160),  # what is left would be too little for a chunk of the large kind
        ([128, 72], LONG[:201], 136),
        ([128, 72], LONG[:200], 136),  # nothing is left: the same prompt
        ([128, 72], LONG[:191], 120),  # a shorter one
        ([100], [*LONG[:80], *range(900, 1000)], 80),
        ([100], [*LONG[:80], *range(900, 910)], 24),
        ([99, 1], LONG[:200], 96),  # with the prompt's last token, evaluated by itself
        ([100], LONG[:50], 0),  # a short prompt, which is read in one small chunk
        ([100], [*LONG[:40], 900, 901], 0),
        ([40], LONG[:60], 40),
        ([40], LONG[:45], 32),
        ([40], LONG[:41], 32),
        ([40], LONG[:300], 0),  # the other way round
        ([40, *[1] * 30], LONG[:90], 70),  # produced: stays as it is
        ([100, *[1] * 30, 20], LONG[:300], 150),
        ([100, *[1] * 30, 19, 1], LONG[:300], 150),
    ],
)
def test_a_kept_prompt_leaves_what_reading_the_whole_would_leave(
    before: list[int], prompt: list[int], kept: int
) -> None:
    kv = KvCache(Ledger(least_chunk=64), 1 << 20)
    slot = kv.take("turn-1", "talk", LONG)
    read(kv, slot, LONG, *before)
    kv.end("turn-1")
    assert len(kv.take("other", "other", prompt).tokens) == kept


def test_the_next_turn_reads_only_what_is_new() -> None:
    """Also of what was read ahead for it."""
    kv = KvCache(Ledger(least_chunk=64), 1 << 20)
    read(kv, kv.take("ahead", "talk", LONG), LONG, 100)
    kv.end("ahead")
    assert len(kv.take("turn", "talk", LONG[:110]).tokens) == 100


def test_a_lost_state_is_made_in_the_batches_that_it_was_made_in() -> None:
    kv = KvCache(first := Ledger(), 1 << 20)
    slot = kv.take("turn-1", "talk", LONG)
    read(kv, slot, LONG, 100, 1, 1, 70)
    kv.end("turn-1")
    prompt = [*LONG[:120], *range(900, 1000)]
    slot = kv.take("turn-2", "talk", prompt)
    read(kv, slot, prompt, 90, 1)
    assert first.evaluated == [100, 1, 1, 70, 90, 1]

    again = KvCache(second := Ledger(), 1 << 20)
    made = again.take("turn-2", "talk", prompt, slot.batches)
    while (known := made.batches.at(len(made.tokens))) is not None:
        read(again, made, prompt, known[1])
    assert second.evaluated == [100, 1, 1, 70, 90, 1]
    assert made.tokens == second.held[made.sequence] == prompt[:211]
    assert made.batches.runs == slot.batches.runs
    # Ended in the middle of that, it is a prefix of what it holds.
    again.drop("turn-2")
    made = again.take("turn-2", "talk", prompt, slot.batches)
    read(again, made, prompt, 100)
    again.end("turn-2")
    assert made.batches.runs == [(100, 100)]


def test_a_job_whose_state_is_there_needs_no_batches() -> None:
    kv = KvCache(Ledger(), 1 << 20)
    slot = kv.take("a", "a", LONG)
    read(kv, slot, LONG, 70, 30)
    assert kv.take("a", "a", LONG, slot.batches) is slot
    assert slot.tokens == LONG[:100]
    assert slot.batches.runs == [(70, 70), (30, 30)]


@pytest.mark.parametrize("runs", [[(600, 300)], [(300, 300), (500, 300), (500, 50)]])
def test_batches_that_this_engine_cannot_evaluate_are_no_obstacle(runs: list[tuple[int, int]]) -> None:
    """Too many at once, or more than the context with what was cut off: its settings were changed since."""
    kv = KvCache(Ledger(), 1 << 20)
    assert kv.take("a", "a", LONG, Batches(runs)).batches.at(0) is None
