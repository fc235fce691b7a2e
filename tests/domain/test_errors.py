import pytest

from domain.errors import QueueFull


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        (
            "chat/0190-ab",
            "The queue is full: 4 questions of this conversation wait and the limit is 4. Wait for an answer, or",
        ),
        ("extract/0190-ab", "The queue is full: 4 readings of this note wait and"),
        ("nataraj/all", "The queue is full: 4 cards of this deck wait and"),
        ("gana/0190-ab", "The queue is full: 4 runs of this Gana wait and"),
        ("api/editor", "The queue is full: 4 requests of editor wait and"),
        (None, "The queue is full: 4 jobs wait and the limit is 4. Try again when some have run."),
        ("the embedding lane", "The queue is full: 4 jobs wait and"),
    ],
)
def test_a_full_queue_is_told_in_words_without_ids(flow: str | None, said: str) -> None:
    assert str(QueueFull(4, 4, flow)).startswith(said)
    assert "0190" not in str(QueueFull(4, 4, flow))
