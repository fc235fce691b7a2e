import json

import numpy as np
import pytest

from data.inference.backend import Vocabulary
from data.inference.constraint import Grammars, Matcher
from domain.entities.llm import Sampling
from domain.errors import InvalidSchema

END = 256
BYTES = Vocabulary(
    257,
    lambda token: b"" if token == END else bytes([token]),
    {"<|end|>": END},
    frozenset({END}),
    lambda text, specials: list(text.encode()),
    None,
    None,
)
PERSON: dict[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name", "tags"],
    "additionalProperties": False,
}


def nested(levels: int) -> dict[str, object]:
    """Arrays within arrays."""
    schema: dict[str, object] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def consumed(matcher: Matcher, text: str) -> tuple[int, bool]:
    """How many bytes are allowed, and whether the output is then complete."""
    complete = False
    for at, byte in enumerate(text.encode()):
        if complete or not matcher.allows(byte):
            return at, complete
        complete = matcher.consume(byte)
    return len(text.encode()), complete


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bo", "tags": []}',
        '{"name": "é\\n🌱", "tags": [1, 22]}',
        json.dumps({"name": "", "tags": [0]}),
    ],
)
def test_valid_output_is_allowed_and_complete_at_its_last_byte(text: str) -> None:
    assert consumed(Grammars(BYTES).matcher(PERSON), text) == (len(text.encode()), True)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('{"nome"', 3),
        ('{"name": 7', 9),
        ('{"name": "a", "tags": []}x', 25),
        ('{"name":"a"', 8),
        ('{"name":  "a"', 9),
        ('{"name": "a",\n', 13),
        ('{"name": "a", "tags": [1,2]', 25),
        ("{ ", 1),
        ("{\t", 1),
        ("\n", 0),
    ],
)
def test_what_the_schema_forbids_is_not_allowed(text: str, allowed: int) -> None:
    assert consumed(Grammars(BYTES).matcher(PERSON), text)[0] == allowed


def test_the_end_token_is_allowed_only_where_the_output_may_end() -> None:
    matcher = Grammars(BYTES).matcher({"type": "integer"})
    assert not matcher.allows(END)
    assert consumed(matcher, "12") == (2, False)
    assert matcher.allows(END)
    assert not matcher.allows(ord("x"))


def test_a_draw_among_the_allowed_keeps_their_proportions() -> None:
    matcher = Grammars(BYTES).matcher({"enum": ["a", "b"]})
    consumed(matcher, '"')
    logits = np.zeros(300, np.float32)
    logits[[ord("a"), ord("b"), ord("c")]] = np.log([0.1, 0.3, 0.6])
    draws = [matcher.sample_allowed(logits.copy(), Sampling(temperature=1, seed=1), at) for at in range(2000)]
    assert set(draws) == {ord("a"), ord("b")}
    assert abs(draws.count(ord("b")) / len(draws) - 0.75) < 0.03


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": "string", "pattern": "("},
        {"$ref": "#/nowhere"},
        {"type": "object", "properties": 7},
        {"enum": []},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"\ud800": {"type": "integer"}}},
        {"const": "\ud800"},
        {"type": "integer", "minimum": float("nan")},
        nested(400),
        nested(100_000),
    ],
)
def test_a_schema_that_cannot_be_compiled_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(InvalidSchema, match="JSON schema"):
        Grammars(BYTES).matcher(schema)


def test_a_schema_that_ends_nowhere_is_found_out_where_the_output_cannot_go_on() -> None:
    matcher = Grammars(BYTES).matcher(
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/a"}},
            "required": ["x"],
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        }
    )
    assert consumed(matcher, '{"x": 1')[0] == 6
    with pytest.raises(InvalidSchema, match="no valid output"):
        matcher.sample_allowed(np.zeros(257, np.float32), Sampling(), 0)


def test_a_recursive_schema_that_can_end_is_followed() -> None:
    tree: dict[str, object] = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "additionalProperties": False,
    }
    text = '{"next": {"next": {}}}'
    assert consumed(Grammars(BYTES).matcher(tree), text) == (len(text), True)


def test_a_token_that_is_not_allowed_never_completes_the_output() -> None:
    with pytest.raises(InvalidSchema):
        Grammars(BYTES).matcher(PERSON).consume(ord("x"))
