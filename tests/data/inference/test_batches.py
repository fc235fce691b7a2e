import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.inference.batches import Batches

SIZES = st.lists(st.integers(1, 6), max_size=12)


def made(sizes: list[int]) -> Batches:
    batches = Batches()
    for size in sizes:
        batches.append(size)
    return batches


def played(batches: Batches) -> list[tuple[int, int]]:
    found, position = [], 0
    while (batch := batches.at(position)) is not None:
        found.append(batch)
        position += batch[1]
    assert position == batches.tokens
    return found


@given(SIZES)
def test_the_batches_come_back_in_their_order(sizes: list[int]) -> None:
    batches = made(sizes)
    assert played(batches) == [(size, size) for size in sizes]
    assert batches.tokens == sum(sizes)
    assert played(Batches(batches.runs)) == played(batches)


def test_tokens_produced_one_by_one_take_no_room() -> None:
    assert made([63, 63, 17] + [1] * 500).runs == [(63, 126), (17, 17), (1, 500)]


@given(SIZES, st.integers(0, 80), SIZES)
def test_a_batch_that_was_cut_keeps_its_size_and_what_follows_begins_anew(
    sizes: list[int], kept: int, more: list[int]
) -> None:
    expected, left = [], kept
    for size in sizes:
        if left > 0:
            expected.append((size, min(size, left)))
        left -= size
    batches = Batches(made(sizes).until(kept))
    assert played(batches) == expected
    for size in more:
        batches.append(size)
    assert played(batches) == expected + [(size, size) for size in more]


@pytest.mark.parametrize("runs", [[(0, 5)], [(5, 0)], [(-1, 3)], [(3, -1)], [(3,)]])
def test_nonsense_is_refused(runs: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"batch|unpack"):
        Batches(runs)


@pytest.mark.parametrize(
    ("runs", "most", "context_tokens", "fits"),
    [
        ([], 1, 1, True),
        ([(8, 24), (1, 10)], 8, 34, True),
        ([(8, 24), (1, 10)], 7, 34, False),
        ([(8, 24), (1, 10)], 8, 33, False),
        ([(100, 10), (5, 5)], 100, 100, True),
        ([(5, 5), (100, 10)], 100, 100, False),  # cut, it is evaluated whole
        ([(8, 8), (1, 512)], 8, 1000, True),
        ([(8, 8), (1, 300), (8, 8), (1, 213)], 8, 1000, False),  # too many one by one
    ],
)
def test_fit(runs: list[tuple[int, int]], most: int, context_tokens: int, fits: bool) -> None:
    assert Batches(runs).fit(most, context_tokens) is fits
