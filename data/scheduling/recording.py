"""A trace that was written down, by `uniun simulate --json` or as the history of a running UNIUN, read again."""

import json
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.scheduling.scenario import MAX_CHARACTERS, Id, Seconds
from data.scheduling.summary import summarise
from domain.entities.llm import LlmTaskKind
from domain.entities.simulation import SimulationReport
from domain.errors import ScenarioError
from domain.reasons import plain_reason

MAX_RECORDS = 2_000_000
_BEGINNING = re.compile(r'\s*\{"t":\s*[\d.]+,\s*"event":')


class _Line(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    t: Seconds
    event: Id


class _JobLine(_Line):
    job: Id
    kind: LlmTaskKind
    flow: Id
    tier: int = Field(ge=-1, le=5)
    model: Id


def is_recording(text: str) -> bool:
    """Whether it begins as every record of a trace does."""
    return _BEGINNING.match(text) is not None


def read_recording(text: str, filename: str) -> SimulationReport:
    """The trace with its summary counted anew. Raises `ScenarioError` with file, line and reason."""
    if len(text) > MAX_CHARACTERS:
        raise ScenarioError(f"{filename}: larger than {MAX_CHARACTERS // 1_000_000} MB; split the trace.")
    trace: list[dict[str, Any]] = []
    end = 0.0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if len(trace) == MAX_RECORDS:
            raise ScenarioError(f"{filename}: more than {MAX_RECORDS} records; split the trace.")
        record = _read_line(line, f"{filename}, line {number}")
        if record["t"] < end:
            raise ScenarioError(f"{filename}, line {number}: time goes back from {end} to {record['t']}.")
        end = record["t"]
        if record["event"] != "summary":
            trace.append(record)
    try:
        trace.append(summarise(trace, end))
    except (KeyError, TypeError, ValueError) as error:
        raise ScenarioError(f"{filename}: the trace lacks a record that later ones need ({error}).") from None
    lines = tuple(json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in trace)
    return SimulationReport(trace=tuple(trace), json_lines=lines)


def _read_line(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        _JobLine.model_validate(record) if "job" in record else _Line.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "record"
        raise ScenarioError(f"{where}: {field}: {plain_reason(str(first['msg']))}.") from None
    except (ValueError, TypeError, RecursionError):
        raise ScenarioError(f"{where}: this is no JSON object.") from None
    return dict(record)
