"""A trace record as docs/scheduler.md, section Simulation, writes it."""

from typing import Any

from data.scheduling.events import Record
from domain.entities.llm import LlmTaskKind


def plain_record(record: Record, t: float) -> dict[str, Any]:
    """Plain values, told at `t`; seconds are rounded to a microsecond."""
    line: dict[str, Any] = {"t": t, "event": record.event, **record.fields}
    return {key: _plain(value) for key, value in line.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return value.value if isinstance(value, LlmTaskKind) else value
