from data.inference.prefill import FIRST_CHUNK, MIN_CHUNK, ChunkSizer

MAX_CHUNK = 512


def test_the_first_chunk_is_small_and_the_next_fits_the_time() -> None:
    sizer = ChunkSizer(0.1, MAX_CHUNK)
    assert sizer.size(10_000) == FIRST_CHUNK
    sizer.learn(16, 0.04)
    assert sizer.size(10_000) == 40


def test_a_slower_engine_is_learned_within_a_few_chunks() -> None:
    sizer = ChunkSizer(0.1, MAX_CHUNK)
    sizer.learn(16, 0.016)
    for _ in range(6):
        size = sizer.size(10_000)
        sizer.learn(size, size / 200)
    assert 20 <= sizer.size(10_000) <= 40


def test_chunks_stay_within_their_limits() -> None:
    sizer = ChunkSizer(0.1, MAX_CHUNK)
    sizer.learn(16, 0.0)
    assert sizer.size(10_000) == MAX_CHUNK
    for _ in range(60):
        sizer.learn(16, 1000.0)
    assert sizer.size(10_000) == MIN_CHUNK


def test_a_remainder_teaches_nothing() -> None:
    sizer = ChunkSizer(0.1, MAX_CHUNK)
    sizer.learn(1, 5.0)
    assert sizer.size(10_000) == FIRST_CHUNK


def test_what_is_left_is_taken_whole_when_it_is_little_more_than_a_chunk() -> None:
    sizer = ChunkSizer(0.1, MAX_CHUNK)
    sizer.learn(16, 0.016)
    assert sizer.size(150) == 150
    assert sizer.size(151) == 100
    assert sizer.size(7) == 7
    sizer.learn(10_000, 0.001)
    assert sizer.size(MAX_CHUNK + 3) == MAX_CHUNK


def test_no_rest_is_too_short_for_the_usual_kernels() -> None:
    sizer = ChunkSizer(0.1, 63)
    sizer.learn(16, 0.001)
    for missing in range(1, 400):
        left = missing
        while left:
            size = sizer.size(left)
            assert 0 < size <= 63
            assert size >= 3 or size == missing
            left -= size
