"""The scheduler as the open pages see it: one look for all of them."""

from weakref import WeakKeyDictionary

from domain.entities.scheduler import SchedulerSnapshot
from presentation.controllers.scheduler import SchedulerController
from presentation.web.site import Site

SHARED_S = 0.15
"""Pages that look within this time share one look, which costs the loop some milliseconds when jobs of many flows wait."""

_glances: WeakKeyDictionary[SchedulerController, tuple[float, SchedulerSnapshot]] = WeakKeyDictionary()


def glance(site: Site) -> SchedulerSnapshot:
    """At most `SHARED_S` old."""
    now, scheduler = site.now(), site.faces.scheduler
    at, snapshot = _glances.get(scheduler, (now, None))
    if snapshot is None or now - at > SHARED_S:
        snapshot = scheduler.snapshot()
        _glances[scheduler] = now, snapshot
    return snapshot
