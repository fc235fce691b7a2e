"""Scenarios for the simulator: YAML or JSON, checked, with the line of whatever is wrong."""

import json
import re
from typing import Annotated, Any, cast

import yaml
from pydantic import ConfigDict, Field, ValidationError, model_validator

from data.scheduling.config import SchedulerConfig
from data.scheduling.policies import POLICIES
from domain.entities.entity import Entity
from domain.entities.llm import LlmTaskKind
from domain.errors import ScenarioError
from domain.reasons import plain_reason

MAX_CHARACTERS = 32_000_000
MAX_NODES = 4_000_000

Id = Annotated[str, Field(min_length=1, max_length=200)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]


class ScenarioEntity(Entity):
    """As every entity; ids may be written as numbers."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class ModelSpeed(ScenarioEntity):
    """The engine's speed with one model; seconds, tokens per second."""

    load_s: Seconds = 10.0
    prefill_tps: float = Field(default=500.0, ge=0.001, le=1e9)
    decode_tps: float = Field(default=20.0, ge=0.001, le=1e9)
    parallel: int = Field(default=1, ge=1, le=1000)
    """Jobs that run at once, each at this speed."""


class SubmitSpec(ScenarioEntity):
    """A job; `deadline` is an absolute time in seconds."""

    id: Id
    kind: LlmTaskKind
    flow: Id
    model: Id
    prompt_tokens: int = Field(ge=0, le=10**9)
    output_tokens: int = Field(ge=0, le=10**9)
    deadline: float | None = None
    foreground_hint: bool = False
    weight: float = Field(default=1.0, ge=0.001, le=1000)
    coalesce_key: Id | None = None
    waits_for: Id | None = None
    ahead: bool = False
    """Of a chat: only its prompt is read."""

    @model_validator(mode="after")
    def _is_inference(self) -> "SubmitSpec":
        if self.kind is LlmTaskKind.MODEL_SWITCH:
            raise ValueError("model_switch is never inference: use a switch_model event")
        if self.ahead and self.kind is not LlmTaskKind.CHAT:
            raise ValueError("only a chat is read ahead")
        return self


class ForegroundSpec(ScenarioEntity):
    kind: LlmTaskKind
    subject: Id | None = None


class SwitchSpec(ScenarioEntity):
    model: Id
    force: bool = False


class ScenarioEvent(ScenarioEntity):
    """One thing that happens at `at`; exactly one of the others is given (`foreground: null` clears the surface)."""

    at: Seconds
    submit: SubmitSpec | None = None
    cancel: Id | None = None
    foreground: ForegroundSpec | None = None
    switch_model: SwitchSpec | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "ScenarioEvent":
        given = self.model_fields_set - {"at"}
        if len(given) != 1:
            raise ValueError("an event has `at` and exactly one of submit, cancel, foreground, switch_model")
        if given != {"foreground"} and getattr(self, next(iter(given))) is None:
            raise ValueError(f"{next(iter(given))} is empty")
        return self


class ScenarioConfig(SchedulerConfig):
    prefill_chunk_tokens: int = Field(default=128, ge=1, le=10**9)


class Scenario(ScenarioEntity):
    """A whole scenario."""

    name: str = "unnamed"
    policy: str = "uniun"
    config: ScenarioConfig = ScenarioConfig()
    models: dict[Id, ModelSpeed] = Field(min_length=1, max_length=1000)
    loaded: Id | None = None
    events: tuple[ScenarioEvent, ...] = Field(max_length=1_000_000)
    until: Seconds | None = None


Path = tuple[str | int, ...]


def parse_scenario(text: str, filename: str) -> Scenario:
    """Reads a scenario. Raises `ScenarioError` with file, line and reason."""
    if len(text) > MAX_CHARACTERS:
        raise ScenarioError(f"{filename}: larger than {MAX_CHARACTERS // 1_000_000} MB; split the scenario.")
    data, nodes = _read(text, filename)
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = first["loc"]
        reason = plain_reason(str(first["msg"]))
        raise ScenarioError(_message(filename, text, nodes, path, reason)) from None
    for path, reason in _semantic_faults(scenario):
        raise ScenarioError(_message(filename, text, nodes, path, reason))
    return scenario


def _semantic_faults(scenario: Scenario) -> "list[tuple[Path, str]]":
    """The first thing that is well-formed but makes no sense, if any."""
    if scenario.policy not in POLICIES:
        return [(("policy",), f"unknown policy {scenario.policy!r}; there are {', '.join(POLICIES)}")]
    if scenario.loaded is not None and scenario.loaded not in scenario.models:
        return [(("loaded",), f"unknown model {scenario.loaded!r}")]
    ids: dict[str, int] = {}
    for at, event in enumerate(scenario.events):
        if event.submit is not None and ids.setdefault(event.submit.id, at) != at:
            first = ids[event.submit.id]
            return [
                (
                    ("events", at, "submit", "id"),
                    f"the id {event.submit.id!r} is used by event {first} already",
                )
            ]
    for at, event in enumerate(scenario.events):
        path: Path = ("events", at)
        for key, model in (("submit", event.submit), ("switch_model", event.switch_model)):
            if model is not None and model.model not in scenario.models:
                return [((*path, key, "model"), f"unknown model {model.model!r}")]
        if event.cancel is not None and event.cancel not in ids:
            return [((*path, "cancel"), f"no event submits a job {event.cancel!r}")]
        waits_for = event.submit.waits_for if event.submit is not None else None
        if waits_for is not None and (
            ids.get(waits_for) is None or event.submit is None or waits_for == event.submit.id
        ):
            return [((*path, "submit", "waits_for"), f"no other event submits a job {waits_for!r}")]
    return []


def _read(text: str, filename: str) -> tuple[Any, yaml.Node | None]:
    """The plain data, and where YAML was needed its node tree. JSON is tried first: it is the faster parser."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_unique), None
        except (ValueError, RecursionError):
            pass  # flow-style YAML starts with a brace too; if it is neither, YAML's message has the line
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        if node is None:
            raise ScenarioError(f"{filename}:1: the scenario is empty.")
        _check_tree(node, filename)
        return yaml.constructor.SafeConstructor().construct_document(node), node
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise ScenarioError(
            f"{filename}:{line}: not YAML or JSON: {error.problem or error.context}."
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ScenarioError(f"{filename}:1: not YAML or JSON: {reason}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a key is given twice")
    return data


def _check_tree(root: yaml.Node, filename: str) -> None:
    """Refuses aliases (a few bytes of them can mean gigabytes) and keys given twice."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            raise ScenarioError(
                f"{filename}:{_line(node)}: YAML aliases are not allowed here; write the value out."
            )
        seen.add(id(node))
        if len(seen) > MAX_NODES:
            raise ScenarioError(f"{filename}: more than {MAX_NODES} values; split the scenario.")
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if key.value in keys if isinstance(key.value, str) else True:
                    raise ScenarioError(
                        f"{filename}:{_line(key)}: the key is given twice, or is not a plain word."
                    )
                keys.add(key.value)
                stack += [key, value]
        elif isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)


def _line(node: yaml.Node) -> int:
    return cast(int, node.start_mark.line) + 1


def _message(filename: str, text: str, root: yaml.Node | None, path: Path, reason: str) -> str:
    if root is None:
        root = _lines_of_json(text)
    line = 1
    node = root
    for step in path:
        if node is None:
            break
        line = _line(node)
        node = _child(node, step)
    if node is not None:
        line = _line(node)
    where = ".".join(str(step) for step in path) or "scenario"
    return f"{filename}:{line}: {where}: {reason[:1].lower()}{reason[1:]}."


def _lines_of_json(text: str) -> yaml.Node | None:
    """JSON read as YAML, for its line numbers; what YAML does not allow (surrogate escapes, tabs) is masked first."""
    try:
        return yaml.compose(
            re.sub(r"\\u[dD][89a-fA-F]", r"\\u00", text).replace("\t", " "), Loader=yaml.CSafeLoader
        )
    except yaml.YAMLError:
        return None


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if str(key.value) == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return cast(yaml.Node, node.value[step])
    return None
