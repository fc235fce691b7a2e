import pytest

from data.inference.prefill import ALIGN, FIRST_CHUNK, ChunkSizer

LEAST, MOST = 8, 512


def sizer() -> ChunkSizer:
    return ChunkSizer(0.1, LEAST, MOST)


def test_the_first_chunk_is_small_and_the_next_fits_the_time() -> None:
    sizes = sizer()
    assert sizes.size(10_000) == FIRST_CHUNK
    sizes.learn(16, 0.04)
    assert sizes.size(10_000) == 40


def test_a_slower_engine_is_learned_within_a_few_chunks() -> None:
    sizes = sizer()
    sizes.learn(16, 0.016)
    for _ in range(6):
        size = sizes.size(10_000)
        sizes.learn(size, size / 200)
    assert 16 <= sizes.size(10_000) <= 40


def test_chunks_stay_within_their_limits() -> None:
    sizes = sizer()
    sizes.learn(16, 0.0)
    assert sizes.size(10_000) == MOST
    for _ in range(60):
        sizes.learn(16, 1000.0)
    assert sizes.size(10_000) == LEAST


def test_a_remainder_teaches_nothing() -> None:
    sizes = sizer()
    sizes.learn(1, 5.0)
    assert sizes.size(10_000) == FIRST_CHUNK


def test_what_is_left_goes_with_the_last_chunk_when_it_is_too_little_for_one() -> None:
    sizes = sizer()
    sizes.learn(16, 0.016)
    assert sizes.size(103) == 103
    assert sizes.size(104) == 96
    assert sizes.size(7) == 7
    sizes.learn(10_000, 0.001)
    assert sizes.size(MOST + 7) == MOST + 7


@pytest.mark.parametrize(("least", "most"), [(8, 56), (64, 128), (8, 512)])
@pytest.mark.parametrize("tokens_per_s", [1, 100, 900, 1_000_000])
def test_all_chunks_of_a_prompt_are_of_one_kind(least: int, most: int, tokens_per_s: int) -> None:
    sizes = ChunkSizer(0.1, least, most)
    sizes.learn(1000, 1000 / tokens_per_s)
    for missing in range(1, 700):
        left = missing
        while left:
            size = sizes.size(left)
            assert min(missing, least) <= size < most + least
            left -= size
            assert left == 0 or size % ALIGN == 0
        assert left == 0
