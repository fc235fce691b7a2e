"""How large a JSON schema may be.

A schema is compiled in one go between two tokens of somebody else's answer, so what one may cost has to be known before
it is queued. The time grows with the number of values, faster with that of an object's fields, doubles with each pattern
that has to hold together with others, and the compiler's stack ends where definitions refer to each other too deeply.
The limits keep the costliest schema found within them at about 0.2 s on a laptop's core.
"""

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import isfinite, prod
from typing import Any
from urllib.parse import unquote

from domain.entities.llm import Tooling
from domain.errors import InvalidSchema

MAX_BYTES = 96 * 1024
MAX_DEPTH = 64
MAX_PATTERN_CHARS = 500
_JOINTLY = "in a schema with allOf, or with $ref, anyOf or oneOf beside other rules,"
_TOGETHER = "in a schema with allOf, anyOf, oneOf or $ref"
_LIMITS = {
    "values": 3_000,
    "fields": 1_000,
    "formats, ranges of numbers and lengths of lists": 128,
    "patterns": 100,
    "patterns for the names of fields": 32,
    f"patterns {_JOINTLY}": 8,
    "different remainders for multipleOf": 10_000,
    f"different remainders for multipleOf {_TOGETHER}": 10_000,
    "levels, those of each definition counted once,": 800,
}
"""Of one schema."""
_TOTALS = {
    **_LIMITS,
    "values": 10_000,
    "fields": 2_000,
    "levels, those of each definition counted once,": 8_000,
}
"""Of all schemas of one request. Many small ones cost less than a large one."""
_JOINERS = {"allOf", "anyOf", "oneOf", "$ref"}
_RULES = {
    "additionalProperties",
    "items",
    "multipleOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
}
_BOUNDS = {"format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}


def check_schemas(schema: dict[str, Any] | None, tooling: Tooling | None) -> None:
    """Raises `InvalidSchema`, which names the limit."""
    tools = () if tooling is None else tooling.tools
    named = [(f"The JSON schema of the tool {tool.name}", tool.parameters) for tool in tools]
    if schema is not None:
        named.append(("The JSON schema", schema))
    totals: Counter[str] = Counter()
    size = 0
    for name, one in named:
        measures = _measured(name, one)
        for what, most in _LIMITS.items():
            _limit(name, what, measures[what], most)
        totals += measures
        size += _size(one)
    together = "All JSON schemas of the request together" if len(named) > 1 else "The JSON schema"
    for what, most in _TOTALS.items():
        _limit(together, what, totals[what], most)
    _limit(together, "bytes", size, MAX_BYTES)


def _measured(name: str, schema: dict[str, Any]) -> Counter[str]:
    """Walks through it once; without recursion, for its depth is hostile until it is known."""
    found: Counter[str] = Counter()
    patterns: list[str] = []
    referred: set[str] = set()
    divisors: set[int] = set()
    joint = together = False
    for value, depth in _values(schema):
        found["values"] += 1
        _limit(name, "values", found["values"], _LIMITS["values"])
        _limit(name, "levels", depth, MAX_DEPTH)
        if not isinstance(value, dict):
            continue
        if isinstance(properties := value.get("properties"), dict):
            found["fields"] += len(properties)
        if isinstance(by_name := value.get("patternProperties"), dict):
            patterns += by_name
            found["patterns for the names of fields"] += len(by_name)
        if isinstance(pattern := value.get("pattern"), str):
            patterns.append(pattern)
        if isinstance(target := value.get("$ref"), str):
            _check_reference(name, target)
            referred.add(target)
        if depth > 1 and isinstance(value.get("$id"), str):
            raise InvalidSchema(f"{name} has an $id within it. Leave it out, and refer from the top: #/…")
        if isinstance(step := value.get("multipleOf"), int | float) and isfinite(step):
            if step <= 0:
                raise InvalidSchema(f"{name} has a multipleOf of {step:g}. It must be more than 0.")
            divisors.add(_remainders(step))
        found["formats, ranges of numbers and lengths of lists"] += not _BOUNDS.isdisjoint(value)
        joins = not _JOINERS.isdisjoint(value)
        joint = joint or "allOf" in value or (joins and not _RULES.isdisjoint(value))
        together = together or joins
    _limit(name, "characters in a pattern", max(map(len, patterns), default=0), MAX_PATTERN_CHARS)
    found["patterns"] = len(patterns)
    found["different remainders for multipleOf"] = sum(divisors)
    if joint:
        found[f"patterns {_JOINTLY}"] = len(patterns)
    if together:
        # Numbers of which each may end an alternative are counted side by side, unlike patterns.
        found[f"different remainders for multipleOf {_TOGETHER}"] = prod(divisors)
    found["levels, those of each definition counted once,"] = _depth(schema) + sum(
        _depth(_named(schema, target)) for target in referred
    )
    return found


def _limit(name: str, what: str, found: int, most: int) -> None:
    if found > most:
        raise InvalidSchema(
            f"{name} may have at most {most:,} {what} and has more. Leave something out, or ask in several requests."
        )


def _size(schema: dict[str, Any]) -> int:
    try:
        return len(json.dumps(schema))
    except (TypeError, ValueError) as error:
        raise InvalidSchema(f"The JSON schema is no JSON: {error}.") from error


def _check_reference(name: str, target: str) -> None:
    """The compiler knows more ways to name a definition ($anchor, other documents), whose depth nobody would count."""
    if target != "#" and not target.startswith("#/"):
        raise InvalidSchema(f"{name} has the $ref {target[:80]!r}. Refer from the top of the schema: #/…")


def _remainders(step: float) -> int:
    """How many there are at most, in the digits of the step and of what it divides."""
    exact = Fraction(str(step))
    return abs(exact.numerator) * exact.denominator


def _values(schema: object) -> Iterator[tuple[object, int]]:
    """Every value with its depth."""
    waiting = [(schema, 1)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        if isinstance(value, dict | list):
            inner = value.values() if isinstance(value, dict) else value
            waiting += [(each, depth + 1) for each in inner]


def _depth(schema: object) -> int:
    return max(depth for _, depth in _values(schema))


def _named(schema: Any, reference: str) -> object:
    """What a `$ref` within the schema names, after RFC 6901; the compiler refuses those that name nothing."""
    for part in unquote(reference).removeprefix("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list) and name.isdecimal() and int(name) < len(schema):
            schema = schema[int(name)]
        elif isinstance(schema, dict):
            schema = schema.get(name)
    return schema
