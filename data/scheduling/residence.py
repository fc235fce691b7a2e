"""Which model is loaded, since when, what a swap costs, and how long the model of a chat lingers."""

from data.scheduling.config import SchedulerConfig
from data.scheduling.jobs import Job
from domain.entities.llm import LlmTaskKind


class Residence:
    """Facts about the device that policies read and only the scheduler changes. Times of the scheduler's clock."""

    def __init__(self, config: SchedulerConfig, resident: str | None, at: float, slots: int = 1) -> None:
        self._config = config
        self.model = resident
        self.since = at
        self.slots = slots
        """How many jobs of the resident model can run at once: 1 on the engine here, more on a server that serves more."""
        self.owed: Job | None = None
        """The job that caused the last swap, until it has been dispatched."""
        self.protected_until = 0.0
        """Until when no due model may stop what runs, because its last run here was stopped before it had a token."""
        self._costs: dict[str, float] = {}
        self._left_at: dict[str, float] = {}
        self.unload_at: float | None = None
        """When the resident model goes if nothing is asked of it until then."""
        self._kept: tuple[str | None, float] = (None, 0.0)
        """A model that somebody is likely to ask again, and until when."""
        self._chat_model: str | None = None
        self._chat_ended_at = 0.0

    def configure(self, config: SchedulerConfig) -> None:
        """From now on."""
        self._config = config

    def cost(self, model: str) -> float:
        """Seconds that a swap to `model` is expected to take."""
        return self._costs.get(model, self._config.default_swap_cost_s)

    def costs(self) -> dict[str, float]:
        """Those measured so far."""
        return dict(self._costs)

    def stays_until(self, model: str) -> float:
        """Until when the resident model keeps the device before `model` may take it for background work: for Q."""
        epsilon = self._config.swap_fraction
        return max(self.since + self.cost(model) * (1 - epsilon) / epsilon, self.protected_until)

    def arrived(self, model: str, at: float, swap_s: float, trigger: Job | None, slots: int = 1) -> None:
        """The model is loaded; learns the cost as an exponentially weighted moving average."""
        known = self._costs.get(model)
        alpha = self._config.swap_cost_alpha
        self._costs[model] = swap_s if known is None else (1 - alpha) * known + alpha * swap_s
        self.model = model
        self.since = at
        self.slots = max(1, slots)
        self.owed = trigger

    def gone(self, at: float) -> None:
        """Nothing is resident any more."""
        if self.model is not None:
            self._left_at[self.model] = at
        self.model = None
        self.slots = 1
        self.owed = None
        self.unload_at = None

    def waited_for_since(self, model: str, oldest: float) -> float:
        """Since when the model has gone without the device, its oldest job having waited since `oldest`.

        Counted from its last stay. By its oldest job alone, two models with old backlogs would pass the device to
        and fro while a third, with younger jobs, waited beyond any bound.
        """
        return max(oldest, self._left_at.get(model, oldest))

    def chat_ended(self, model: str, at: float) -> None:
        self._chat_model = model
        self._chat_ended_at = at

    def keep(self, model: str, seconds: float | None, at: float, *, lingers: bool) -> None:
        """A job on the model ended, and its caller says how long the model should stay. The newest wish counts."""
        self.unload_at = None if seconds is None else at + seconds
        if lingers and seconds is not None:
            self._kept = (model, at + min(seconds, self._config.linger_surface_s))

    def linger_until(self, foreground: LlmTaskKind | None) -> float | None:
        """Until when background work may not swap the resident model away; none if no chat has used it and nobody asked for it to stay."""
        kept = self._kept[1] if self.model is not None and self.model == self._kept[0] else None
        if self.model is None or self.model != self._chat_model:
            return kept
        stay = self._config.linger_factor * self.cost(self.model)
        if foreground is LlmTaskKind.CHAT:
            stay = max(stay, self._config.linger_surface_s)
        return max(self._chat_ended_at + stay, kept or 0.0)
