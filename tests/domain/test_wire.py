"""Errors on their way to another process and back."""

import json

import pytest

from domain import errors
from domain.errors import EngineError, InvalidRequest, PromptTooLong, QueueFull, UniunError
from domain.wire import error_from_wire, error_to_wire


def there_and_back(error: UniunError) -> UniunError:
    return error_from_wire(json.loads(json.dumps(error_to_wire(error))))


def test_an_error_is_the_same_on_the_other_side() -> None:
    full = there_and_back(QueueFull(4, 5, "gana/f"))
    assert isinstance(full, QueueFull)
    assert (full.limit, full.depth, full.flow) == (4, 5, "gana/f")
    assert str(full) == str(QueueFull(4, 5, "gana/f"))
    long = there_and_back(PromptTooLong(10, 5, at_least=True))
    assert isinstance(long, PromptTooLong)
    assert long.at_least is True


def test_every_kind_of_error_arrives() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, UniunError)
    ]
    assert len(kinds) > 20
    for kind in kinds:
        error = kind.__new__(kind)
        error.args = ("what happened",)
        told = there_and_back(error)
        assert type(told) is kind
        assert str(told) == "what happened"


@pytest.mark.parametrize(
    "told",
    [None, 5, {}, {"type": "Exception"}, {"type": "__builtins__", "message": "m"}, {"type": 5, "fields": 5}],
)
def test_what_is_no_error_of_ours_is_an_engine_error(told: object) -> None:
    assert type(error_from_wire(told)) is EngineError


def test_a_kind_is_never_taken_from_elsewhere() -> None:
    assert not isinstance(error_from_wire({"type": "KeyboardInterrupt"}), KeyboardInterrupt)
    assert isinstance(error_from_wire({"type": "InvalidRequest"}), InvalidRequest)
