from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from domain.reasons import plain_reason


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("even numbers are out")
    return value


class Inner(BaseModel):
    pass


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    whole: Annotated[int, Field(le=9), AfterValidator(_odd)] = 1
    number: float = Field(default=0, allow_inf_nan=False)
    flag: bool = False
    text: str = ""
    several: Annotated[list[int], Field(min_length=1, max_length=2)] = [1]
    group: Inner = Inner()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("whole", "x", "it should be a whole number"),
        ("whole", 1.5, "it should be a whole number"),
        ("whole", 10, "it should be less than or equal to 9"),
        ("whole", 2, "even numbers are out"),
        ("number", "x", "it should be a number"),
        ("number", float("nan"), "it should be a finite number"),
        ("flag", "x", "it should be true or false"),
        ("text", 1, "it should be text"),
        ("several", 1, "it should be a list"),
        ("several", [], "it is empty"),
        ("several", [1, 2, 3], "it has too many entries"),
        ("group", 1, "it should be a group of named values"),
        ("nothing", 1, "there is nothing of this name"),
    ],
)
def test_the_library_s_phrases_are_put_plainly(name: str, value: Any, reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Outer.model_validate({name: value})
    assert plain_reason(refused.value.errors()[0]["msg"]) == reason
