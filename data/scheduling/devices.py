"""Several devices behind one way in: the engine here, and beside it every model that servers elsewhere run.

Each has a scheduler of its own. Seconds of different devices cannot be exchanged: a job on a server neither takes the
model here off the device nor owes anything to the jobs here, so tiers, turns and shares hold on each by itself.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from data.clock import Clock
from data.scheduling.config import SchedulerConfig
from data.scheduling.dispatcher import Dispatcher
from data.scheduling.events import Record
from data.scheduling.handle import CallerHandle
from data.scheduling.inspection import Gauges
from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.entities.models import RemoteModel
from domain.entities.scheduler import SchedulerSnapshot
from domain.errors import EngineError, InvalidRequest
from domain.repositories.inference_runner import InferenceRunner
from domain.repositories.model_store import ModelStore

Key = TypeVar("Key")
MOST_VIEWS = 100


class Devices:
    """Implements `SchedulerCoordinator`; an async context manager that owns all engines.

    A remote model's device is made for its first job, with as many slots as its servers take jobs at once; its model is
    always resident. When its registration changes, the next job finds a device that fits.
    """

    def __init__(
        self,
        runner: InferenceRunner,
        make_remote: Callable[[str, RemoteModel], InferenceRunner],
        store: ModelStore,
        clock: Clock,
        config: SchedulerConfig | None = None,
    ) -> None:
        self._make_remote = make_remote
        self._store = store
        self._clock = clock
        self._config = config
        self._ids = itertools.count(1)
        self._here = Dispatcher(runner, store, clock, config, ids=self._ids)
        self._remote: dict[tuple[str, RemoteModel], Dispatcher] = {}
        self._foreground: tuple[LlmTaskKind | None, str | None] = (None, None)
        self._observers: list[Callable[[Record], None]] = []
        self._token_observers: list[Callable[[LlmTaskKind, int], None]] = []
        self._closing: set[asyncio.Future[None]] = set()
        self._closed = False

    async def __aenter__(self) -> "Devices":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends every job with `JobCancelled`, and the engine and all connections with them."""
        self._closed = True
        for device in self._all():
            await device.aclose()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def observe(self, listener: Callable[[Record], None]) -> None:
        """Calls `listener` with every trace record of every device, in order, on the event loop."""
        self._observers.append(listener)
        for device in self._all():
            device.observe(listener)

    def observe_tokens(self, listener: Callable[[LlmTaskKind, int], None]) -> None:
        """Calls `listener` with the kind of a job and how many tokens it has just produced."""
        self._token_observers.append(listener)
        for device in self._all():
            device.observe_tokens(listener)

    def gauges(self) -> Gauges:
        """Queue lengths of all devices together; extract's share is that of the device here."""
        here, *others = [device.gauges() for device in self._all()]
        queued = _sum([here.queued, *(g.queued for g in others)])
        return Gauges(
            queued={key: int(count) for key, count in queued.items()},
            running=here.running + sum(g.running for g in others),
            extract_share=here.extract_share,
            extract_share_limit=here.extract_share_limit,
            extract_exhausted=here.extract_exhausted,
            engine_restarts=here.engine_restarts,
        )

    @property
    def somebody_waits(self) -> bool:
        """Whether what runs on the device here is waited for. What servers elsewhere run takes no core of this machine."""
        return self._here.somebody_waits

    def configure(self, config: SchedulerConfig) -> None:
        """Tunes every device from now on, those to come too."""
        self._config = config
        for device in self._all():
            device.configure(config)

    def reload(self) -> None:
        """Loads the model here anew, as what it is loaded with has changed. Servers elsewhere have their own settings."""
        self._here.reload()

    # -- the port

    def submit(self, request: GenerationRequest) -> CallerHandle:
        if self._closed:
            raise EngineError("UNIUN is closing and takes no more jobs.")
        remote = self._store.get(request.model).remote
        device = self._here if remote is None else self._device(request.model, remote)
        if request.waits_for is not None and any(
            other.knows(request.waits_for) for other in self._all() if other is not device
        ):
            raise InvalidRequest(
                f"The job {request.waits_for} runs on another device than {request.model}; a job cannot wait for it there."
            )
        return device.submit(request)

    def set_foreground(self, kind: LlmTaskKind | None, subject: str | None = None) -> None:
        self._foreground = (kind, subject)
        for device in self._all():
            device.set_foreground(kind, subject)

    async def switch_model(self, model: str, *, force: bool = False) -> None:
        """A remote model needs no switch: it is there beside the one here."""
        if self._store.get(model).remote is None:
            await self._here.switch_model(model, force=force)

    def snapshot(self) -> SchedulerSnapshot:
        """Of the device here, with the jobs of all. A job's position is that on its own device."""
        here, *others = [device.snapshot() for device in self._all()]
        if not others:
            return here
        every = [here, *others]
        running = [job for view in every for job in (view.running, *view.also_running) if job is not None]
        tiers = sorted({tier for view in every for tier in view.tiers})
        return here.model_copy(
            update={
                "running": running[0] if running else None,
                "also_running": tuple(running[1:]),
                "tiers": {
                    tier: tuple(
                        sorted(
                            (job for view in every for job in view.tiers.get(tier, ())),
                            key=lambda job: job.position,
                        )[:MOST_VIEWS]
                    )
                    for tier in tiers
                },
                "queued": dict(sorted(_sum([view.queued for view in every]).items())),
                "kind_vruntime_s": _sum([view.kind_vruntime_s for view in every]),
                "flow_vruntime_s": _sum([view.flow_vruntime_s for view in every]),
                "preemptions": sum(view.preemptions for view in every),
            }
        )

    # -- devices

    def _all(self) -> list[Dispatcher]:
        return [self._here, *self._remote.values()]

    def _device(self, model: str, remote: RemoteModel) -> Dispatcher:
        self._drop_former(model, remote)
        device = self._remote.get((model, remote))
        if device is None:
            device = Dispatcher(
                self._make_remote(model, remote),
                self._store,
                self._clock,
                self._config,
                ids=self._ids,
                resident=model,
                slots=remote.slots,
            )
            self._remote[model, remote] = device
            for listener in self._observers:
                device.observe(listener)
            for token_listener in self._token_observers:
                device.observe_tokens(token_listener)
            if self._foreground[0] is not None:
                device.set_foreground(*self._foreground)
        return device

    def _drop_former(self, model: str, remote: RemoteModel) -> None:
        """The model was registered anew: what its former device still has to do it does, then it goes."""
        for key, device in list(self._remote.items()):
            if key[0] == model and key[1] != remote and device.idle:
                del self._remote[key]
                closing = asyncio.ensure_future(device.aclose())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)


def _sum(counts: list[dict[Key, Any]]) -> dict[Key, Any]:
    total: Counter[Key] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)
