"""What a caller is told while its job waits."""

from collections.abc import Callable

from data.scheduling.inspection import forecast, queue
from data.scheduling.jobs import Phase
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import Waiting

VIEW_PERIOD_S = 0.4
"""Age at which the positions told to waiting callers are computed again …"""
VIEW_PERIOD_PER_JOB_S = 0.002
"""… plus so much for each of them: a forecast of all takes some µs a job, and the event loop is needed for other things."""


class Waits:
    """Positions, estimated starts and reasons. One forecast serves all who ask within its period."""

    def __init__(self, scheduler: InferenceScheduler, now: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._now = now
        self._views: tuple[float, dict[str, tuple[int, float]]] = (float("-inf"), {})
        """When they were computed, and of each waiting job its position and estimated start."""

    def of(self, caller_id: str) -> Waiting | None:
        """None if the caller's job runs or has ended."""
        job = self._scheduler.callers.get(caller_id)
        if job is None or job.on_device:
            return None
        view = self._view(job.id)
        if view is None:
            return Waiting(position=1, estimated_start_s=None, reason=self._reason(1))
        position, start_s = view
        return Waiting(position=position, estimated_start_s=round(start_s, 1), reason=self._reason(position))

    def _view(self, job_id: str) -> tuple[int, float] | None:
        at, views = self._views
        now = self._now()
        if now - at > VIEW_PERIOD_S + VIEW_PERIOD_PER_JOB_S * len(views) or job_id not in views:
            order = forecast(self._scheduler, now, queue(self._scheduler))
            views = {job.id: (position, start_s) for job, position, start_s in order}
            self._views = (now, views)
        return views.get(job_id)

    def _reason(self, position: int) -> str:
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
        ahead = f", {position - 1} more before it" if position > 1 else ""
        return f"{running.kind} ({running.spec.flow}) runs{ahead}"
