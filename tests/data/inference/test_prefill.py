from data.inference.prefill import FIRST_CHUNK, MAX_CHUNK, MIN_CHUNK, ChunkSizer


def test_the_first_chunk_is_small_and_the_next_fits_the_time() -> None:
    sizer = ChunkSizer(0.1)
    assert sizer.size() == FIRST_CHUNK
    sizer.learn(16, 0.04)
    assert sizer.size() == 40


def test_a_slower_engine_is_learned_within_a_few_chunks() -> None:
    sizer = ChunkSizer(0.1)
    sizer.learn(16, 0.016)
    for _ in range(6):
        size = sizer.size()
        sizer.learn(size, size / 200)
    assert 20 <= sizer.size() <= 40


def test_chunks_stay_within_their_limits() -> None:
    sizer = ChunkSizer(0.1)
    sizer.learn(16, 0.0)
    assert sizer.size() == MAX_CHUNK
    for _ in range(60):
        sizer.learn(16, 1000.0)
    assert sizer.size() == MIN_CHUNK


def test_a_remainder_teaches_nothing() -> None:
    sizer = ChunkSizer(0.1)
    sizer.learn(1, 5.0)
    assert sizer.size() == FIRST_CHUNK
