"""What a simulated run of the scheduler leaves behind."""

from domain.entities.entity import Entity


class SimulationReport(Entity):
    """The trace of one scenario, in order; its last record is the summary.

    Records hold `t` (seconds), `event` and, for a job, `job`, `kind`, `flow`, `tier` and `model`; docs/scheduler.md
    lists them all. `json_lines` is the same trace, one compact JSON object a line, the bytes that are compared between runs.
    """

    trace: tuple[dict[str, object], ...]
    json_lines: tuple[str, ...]
