"""What a benchmark reports: figures with their goals, and the raw numbers behind them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Goal:
    """A bound that the figure should keep; missing it is reported and fails nothing."""

    relation: Literal["<=", ">="]
    bound: float

    def met(self, value: float) -> bool:
        return value <= self.bound if self.relation == "<=" else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.relation == '<=' else '≥'} {self.bound:g}"


@dataclass(frozen=True)
class Figure:
    """One number. A ratio (`unit` is `×`) compares two things that were measured in turns in the same run."""

    name: str
    value: float
    unit: str = "×"
    goal: Goal | None = None

    def as_json(self) -> dict[str, Any]:
        goal = None if self.goal is None else {"relation": self.goal.relation, "bound": self.goal.bound}
        met = None if self.goal is None else self.goal.met(self.value)
        return {"name": self.name, "value": self.value, "unit": self.unit, "goal": goal, "met": met}


@dataclass(frozen=True)
class Report:
    """All figures of one benchmark, and `raw`: plain values, medians among them, in seconds unless named otherwise."""

    benchmark: str
    figures: tuple[Figure, ...]
    raw: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "figures": [figure.as_json() for figure in self.figures],
            "raw": self.raw,
        }


def at_most(bound: float) -> Goal:
    return Goal("<=", bound)


def at_least(bound: float) -> Goal:
    return Goal(">=", bound)


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear between the two nearest samples."""
    return float(np.percentile(values, percent))


def median(values: Sequence[float]) -> float:
    return percentile(values, 50)


def spread(values: Sequence[float]) -> dict[str, float]:
    """The distribution in five numbers."""
    return {
        "samples": len(values),
        "p50": median(values),
        "p95": percentile(values, 95),
        "p99": percentile(values, 99),
        "max": max(values),
    }
