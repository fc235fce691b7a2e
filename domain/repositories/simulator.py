"""The scheduler, driven by a scenario instead of by users and a device."""

from typing import Protocol

from domain.entities.simulation import SimulationReport


class Simulator(Protocol):
    """Runs the real policy against a model of the engine; the same scenario always gives the same trace."""

    def simulate(self, text: str, filename: str) -> SimulationReport:
        """Runs the scenario in `text` (YAML or JSON); `filename` is only named in errors. A trace is only read.

        Raises `ScenarioError` with the file, the line and the reason when the scenario is malformed.
        """
        ...
