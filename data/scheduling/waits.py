"""What a caller is told while its job waits."""

from collections.abc import Callable
from dataclasses import dataclass

from data.scheduling.inspection import forecast, queue
from data.scheduling.jobs import Job, Phase
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import Waiting

VIEW_PERIOD_S = 0.4
"""Age at which the positions told to waiting callers are computed again …"""
VIEW_PERIOD_PER_JOB_S = 0.002
"""… plus so much for each of them: a forecast takes some µs a job, and the event loop is needed for other things."""
MOST_PLACES = 200
"""Jobs of a tier whose place is told; one that is further back is told how many go before it at least."""


@dataclass(frozen=True, slots=True)
class View:
    """Who stands where."""

    at: float
    places: dict[str, tuple[int, float]]
    """Of the first of each tier, by job: position and estimated start."""
    behind: dict[int, int]
    """By tier: the position of the first one that has no place."""


class Waits:
    """Positions, estimated starts and reasons. One forecast serves all who ask within its period."""

    def __init__(self, scheduler: InferenceScheduler, now: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._now = now
        self._seen = View(float("-inf"), {}, {})

    def of(self, caller_id: str) -> Waiting | None:
        """None if the caller's job runs or has ended."""
        job = self._scheduler.callers.get(caller_id)
        if job is None or job.on_device:
            return None
        view = self._view(job)
        if (place := view.places.get(job.id)) is not None:
            position, start_s = place
            return Waiting(
                position=position, estimated_start_s=round(start_s, 1), reason=self._reason(position)
            )
        position = view.behind.get(self._scheduler.policy.tier(job), 1)
        reason = self._reason(position, at_least=True)
        return Waiting(position=position, at_least=True, estimated_start_s=None, reason=reason)

    def _view(self, job: Job) -> View:
        """One that knows where the job stands."""
        now, seen = self._now(), self._seen
        old = now - seen.at > VIEW_PERIOD_S + VIEW_PERIOD_PER_JOB_S * len(seen.places)
        came_later = job.id not in seen.places and (
            job.waiting_since >= seen.at or self._scheduler.policy.tier(job) not in seen.behind
        )
        if old or came_later:
            waiting = queue(self._scheduler, MOST_PLACES)
            order = forecast(self._scheduler, now, waiting)
            places = {job.id: (position, start_s) for job, position, start_s in order}
            behind, before = {}, 0
            for tier, their in waiting.items():
                if their.count > len(their.first):
                    behind[tier] = before + len(their.first) + 1
                before += their.count
            self._seen = View(now, places, behind)
        return self._seen

    def _reason(self, position: int, *, at_least: bool = False) -> str:
        scheduler = self._scheduler
        if scheduler.loading is not None:
            model = scheduler.loading.model
            spent = self._now() - scheduler.loading.started_at
            return f"loading {model}, {spent:.0f} s of about {scheduler.residence.cost(model):.0f} s"
        running = scheduler.running
        if running is None:
            return scheduler.last_reason
        if running.phase is Phase.STOPPING:
            return f"stopping {running.kind} ({running.spec.flow})"
        count = f"{position - 1} or more" if at_least else f"{position - 1} more"
        ahead = f", {count} before it" if position > 1 else ""
        return f"{running.kind} ({running.spec.flow}) runs{ahead}"
