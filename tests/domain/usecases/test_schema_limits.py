"""Schemas that a compiler of grammars chokes on are refused before they are queued; ordinary large ones are not."""

from typing import Any

import pytest

from domain.entities.llm import Message, Tool, Tooling
from domain.errors import InvalidSchema
from domain.usecases.llm import checked_request
from domain.usecases.schema_limits import check_schemas

Schema = dict[str, Any]


def text(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def chain(definitions: int, levels: int, first: str = "a") -> Schema:
    """Definitions, each of which names the next; `first` is how the names' first letter is written."""

    def nested(schema: Schema) -> Schema:
        for _ in range(levels):
            schema = {"type": "array", "items": schema}
        return schema

    defs = {f"a{at}": nested({"$ref": f"#/$defs/{first}{at + 1}"}) for at in range(definitions)}
    return {"$ref": f"#/$defs/{first}0", "$defs": {**defs, f"a{definitions}": {"type": "null"}}}


def deep(levels: int) -> Schema:
    schema: Schema = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


HOSTILE: dict[str, Schema] = {
    "at most 3,000 values": {"anyOf": [{"const": at} for at in range(5_000)]},
    "at most 1,000 fields": {"properties": {f"p{at}": {} for at in range(1_001)}},
    "at most 100 patterns": {"anyOf": [text(f"a{at}") for at in range(101)]},
    "at most 500 characters in a pattern": text("a" * 501),
    "at most 32 patterns for the names": {"patternProperties": {f"^a{at}$": {} for at in range(33)}},
    "at most 8 patterns in a schema with allOf": {"allOf": [text(f"a{at}") for at in range(9)]},
    "at most 10,000 different remainders": {"type": "integer", "multipleOf": 1_000_003},
    "10,000 different remainders for multipleOf in": {"allOf": [{"multipleOf": n} for n in (7, 11, 13, 17)]},
    "remainders for multipleOf in a schema with": {
        "anyOf": [{"type": "integer", "multipleOf": n} for n in (1009, 1013)]
    },
    "a multipleOf of 0": {"$defs": {"z": {"multipleOf": 0}}, "allOf": [{"multipleOf": 97}]},
    "a multipleOf of -2": {"multipleOf": -2},
    "the \\$ref '#there'": {"$ref": "#there", "$defs": {"a": {"$anchor": "there"}}},
    "the \\$ref 'json-schema": {"$ref": "json-schema:///#/$defs/a", "$defs": {"a": {}}},
    "an \\$id within it": {"$defs": {"a": {"$id": "https://one.test/", "items": {"$ref": "#/items"}}}},
    "at most 128 formats": {"anyOf": [{"minimum": at} for at in range(129)]},
    "at most 64 levels": deep(100_000),
    "at most 800 levels, those of each definition": chain(30, 40),
    "at most 800 levels, those of each definition counted": chain(30, 40, first="%61"),
    "at most 98,304 bytes": {"const": "x" * 100_000},
    "no JSON": {"const": object()},
}


@pytest.mark.parametrize("limit", HOSTILE)
def test_a_schema_over_a_limit_is_refused_with_the_limit(limit: str) -> None:
    with pytest.raises(InvalidSchema, match=limit):
        check_schemas(HOSTILE[limit], None)


def test_patterns_that_meet_through_references_count_as_joint() -> None:
    defs = {f"a{at}": {**text(f"a{at}"), "$ref": f"#/$defs/a{at + 1}"} for at in range(9)}
    with pytest.raises(InvalidSchema, match="at most 8 patterns"):
        check_schemas({"$ref": "#/$defs/a0", "$defs": {**defs, "a9": {}}}, None)


def test_ordinary_large_schemas_pass() -> None:
    fields = {
        f"field_{at}": {"type": "string", "description": "What it is.", "title": "Field"} for at in range(40)
    }
    models = {f"Model{at}": {"type": "object", "properties": fields} for at in range(10)}
    linked = {name: {"$ref": f"#/$defs/{name}", "description": "Of such."} for name in models}
    check_schemas({"type": "object", "properties": linked, "$defs": models}, None)
    tools = (
        Tool(name=f"tool{at}", parameters={"properties": dict(list(fields.items())[:9])}) for at in range(90)
    )
    check_schemas(None, Tooling(tools=tuple(tools)))
    check_schemas({"anyOf": [text(f"^{at}-[a-z]+$") for at in range(100)]}, None)
    check_schemas({"type": "number", "multipleOf": 0.01, "$ref": 5, "format": None, "properties": []}, None)


def test_a_schema_that_refers_to_itself_is_measured_once() -> None:
    check_schemas(
        {"properties": {"next": {"$ref": "#"}, "list": {"items": {"$ref": "#/properties/list"}}}}, None
    )


def test_tools_are_limited_each_and_together() -> None:
    wide: Schema = {"properties": {f"p{at}": {} for at in range(1_000)}}
    with pytest.raises(
        InvalidSchema, match="All JSON schemas of the request together may have at most 2,000 fields"
    ):
        check_schemas(None, Tooling(tools=tuple(Tool(name=f"t{at}", parameters=wide) for at in range(3))))
    with pytest.raises(InvalidSchema, match="The JSON schema of the tool t may have at most 100 patterns"):
        check_schemas(None, Tooling(tools=(Tool(name="t", parameters=HOSTILE["at most 100 patterns"]),)))


def test_no_request_with_such_a_schema_is_made() -> None:
    with pytest.raises(InvalidSchema, match="at most 3,000 values"):
        checked_request(
            kind="api",
            flow="f",
            model="m",
            messages=(Message(role="user", content="hi"),),
            json_schema=HOSTILE["at most 3,000 values"],
        )
