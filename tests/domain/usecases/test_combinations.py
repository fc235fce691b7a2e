from itertools import combinations
from math import comb

from domain.usecases.combinations import CombinationSampler


def ids(count: int) -> list[str]:
    return [f"n{number:05}" for number in range(count)]


def test_every_pair_and_triple_is_drawn_once() -> None:
    sampler = CombinationSampler(ids(7), set(), "seed")
    drawn = []
    while (combination := sampler.draw()) is not None:
        drawn.append(combination)
    assert len(drawn) == comb(7, 2) + comb(7, 3)
    assert set(drawn) == {*combinations(ids(7), 2), *combinations(ids(7), 3)}
    assert sampler.exhausted


def test_what_is_taken_is_not_drawn() -> None:
    taken = set(combinations(ids(5), 2)) | set(list(combinations(ids(5), 3))[:-1])
    sampler = CombinationSampler(ids(5), taken, "seed")
    assert sampler.draw() == list(combinations(ids(5), 3))[-1]
    assert sampler.draw() is None


def test_combinations_of_notes_that_are_gone_do_not_count() -> None:
    gone = {("x1", "x2"), ("n00000", "x1"), ("x1", "x2", "x3")}
    sampler = CombinationSampler(ids(2), gone, "seed")
    assert not sampler.exhausted
    assert sampler.draw() == ("n00000", "n00001")


def test_too_few_notes_have_no_combination() -> None:
    for count in (0, 1):
        sampler = CombinationSampler(ids(count), set(), "seed")
        assert sampler.draw() is None
        assert sampler.exhausted


def test_forgotten_notes_are_drawn_no_more() -> None:
    sampler = CombinationSampler(ids(6), set(), "seed")
    sampler.forget(["n00000", "n00001"])
    drawn = []
    while (combination := sampler.draw()) is not None:
        drawn.append(combination)
    assert len(drawn) == comb(4, 2) + comb(4, 3)
    assert not any({"n00000", "n00001"} & set(combination) for combination in drawn)


def test_the_same_seed_draws_the_same_and_both_sizes() -> None:
    one, other = (CombinationSampler(ids(5_000), set(), "seed") for _ in range(2))
    drawn = [one.draw() for _ in range(300)]
    assert drawn == [other.draw() for _ in range(300)]
    sizes = [len(combination) for combination in drawn if combination]
    assert 60 < sizes.count(3) < 140
    assert len(set(drawn)) == 300
