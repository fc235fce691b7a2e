"""The fair pool: virtual runtimes of kinds and of flows inside them.

The accounting is that of the Completely Fair Scheduler (Molnár, Linux 2.6.23): whoever has used the least weighted
device time goes next, and a newcomer starts at the smallest virtual runtime among the active. Two levels, like
CPU groups: a kind pays for all its flows.
"""

from dataclasses import dataclass, field

from data.scheduling.config import SchedulerConfig
from data.scheduling.heap import IndexedHeap
from data.scheduling.jobs import FlowKey, Job
from domain.entities.llm import LlmTaskKind

POOL_KINDS = frozenset({LlmTaskKind.NATARAJ, LlmTaskKind.GANA, LlmTaskKind.API})

KEEP_FLOWS = 10_000
"""Idle flows whose account is remembered."""

MOST_HALVINGS = 64
"""After so many nothing is left of a vruntime; a machine that slept for weeks needs no more."""


@dataclass(slots=True, eq=False)
class Account:
    """What a flow, or a kind, has used: device seconds over weight."""

    order: int
    vruntime: float = 0.0
    weight: float = 1.0
    live_jobs: int = 0


@dataclass(slots=True)
class Level:
    """Accounts that compete with each other: the kinds, or the flows of one kind."""

    active: IndexedHeap[Account] = field(default_factory=IndexedHeap)
    floor: float = 0.0
    """The smallest vruntime among the active; the last such value while none is. Never falls but by halving."""

    def raise_floor(self) -> float:
        first = self.active.first()
        if first is not None and first.vruntime > self.floor:
            self.floor = first.vruntime
        return self.floor

    def activate(self, account: Account) -> None:
        account.vruntime = max(account.vruntime, self.raise_floor())
        self.active.push(account, (account.vruntime, account.order))

    def deactivate(self, account: Account) -> None:
        self.raise_floor()
        self.active.discard(account)

    def rekey(self, account: Account) -> None:
        if account in self.active:
            self.active.push(account, (account.vruntime, account.order))


@dataclass(slots=True)
class Candidates:
    """The fair-pool jobs that one model could run, by kind and flow."""

    flows: dict[LlmTaskKind, IndexedHeap[FlowKey]] = field(default_factory=dict)
    jobs: dict[FlowKey, IndexedHeap[Job]] = field(default_factory=dict)


class FairPool:
    """Accounts of everybody, and per model who would go next. All operations are O(log n) in the queue."""

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self._kinds: dict[LlmTaskKind, Account] = {}
        self._flows: dict[FlowKey, Account] = {}
        self._top = Level()
        self._inside: dict[LlmTaskKind, Level] = {}
        self._models: dict[str, Candidates] = {}
        self._models_of: dict[FlowKey, dict[str, None]] = {}
        self._next_halving: float | None = None
        self._orders = 0
        self._band_s = max(2 * config.fair_slice_s, 10.0)

    def configure(self, config: SchedulerConfig) -> None:
        """From now on."""
        self._config = config
        self._band_s = max(2 * config.fair_slice_s, 10.0)

    def enter(self, job: Job) -> None:
        """A job of the flow was submitted; the first one makes flow and kind active."""
        kind, flow = job.flow_key
        account = self._flow(job.flow_key)
        account.weight = self._config.flow_weights.get(f"{kind}/{flow}", job.spec.weight)
        account.live_jobs += 1
        if account.live_jobs == 1:
            self._inside[kind].activate(account)
        kind_account = self._kinds[kind]
        kind_account.live_jobs += 1
        if kind_account.live_jobs == 1:
            self._top.activate(kind_account)

    def leave(self, job: Job) -> None:
        """A job of the flow ended."""
        account = self._flow(job.flow_key)
        account.live_jobs -= 1
        if not account.live_jobs:
            self._inside[job.kind].deactivate(account)
        kind_account = self._kinds[job.kind]
        kind_account.live_jobs -= 1
        if not kind_account.live_jobs:
            self._top.deactivate(kind_account)

    def add(self, job: Job) -> None:
        """The job may be chosen for its lead's model."""
        candidates = self._models.setdefault(job.lead.model, Candidates())
        heap = candidates.jobs.setdefault(job.flow_key, IndexedHeap())
        heap.push(job, (job.spec.rank, job.arrival))
        self._models_of.setdefault(job.flow_key, {})[job.lead.model] = None
        self._place(job.lead.model, job.flow_key)

    def discard(self, job: Job) -> None:
        """The job may no longer be chosen."""
        model = job.lead.model
        candidates = self._models.get(model)
        heap = candidates.jobs.get(job.flow_key) if candidates else None
        if candidates is None or heap is None or job not in heap:
            return
        heap.discard(job)
        if heap:
            self._place(model, job.flow_key)
            return
        del candidates.jobs[job.flow_key]
        flows = candidates.flows[job.kind]
        flows.discard(job.flow_key)
        if not flows:
            del candidates.flows[job.kind]
            if not candidates.flows:
                del self._models[model]
        models = self._models_of[job.flow_key]
        del models[model]
        if not models:
            del self._models_of[job.flow_key]

    def first(self, model: str) -> Job | None:
        """Who goes next on this model: the kind with the smallest vruntime, its flow with the smallest, lowest rank, oldest job."""
        candidates = self._models.get(model)
        if candidates is None:
            return None
        best = min(candidates.flows, key=lambda kind: self._kind_key(candidates, kind))
        flow = candidates.flows[best].first()
        return candidates.jobs[flow].first() if flow is not None else None

    def key(self, job: Job) -> tuple[float, float, int]:
        """Order among jobs of the pool: kind's vruntime, flow's vruntime, arrival."""
        return (self._kinds[job.kind].vruntime, self._flows[job.flow_key].vruntime, job.arrival)

    def beats(self, other: Job, running: Job) -> bool:
        """Whether `other`'s vruntime is strictly smaller, at the level where the two differ."""
        if other.kind is not running.kind:
            return self._kinds[other.kind].vruntime < self._kinds[running.kind].vruntime
        return self._flows[other.flow_key].vruntime < self._flows[running.flow_key].vruntime

    def seconds_ahead(self, running: Job, model: str) -> float | None:
        """Device seconds until the smallest other vruntime on this model equals the running job's; none if alone.

        Negative when it is smaller already.
        """
        candidates = self._models.get(model)
        if candidates is None:
            return None
        soonest: float | None = None
        kind_account = self._kinds[running.kind]
        for kind in candidates.flows:
            if kind is not running.kind:
                ahead = (self._kinds[kind].vruntime - kind_account.vruntime) * kind_account.weight
                soonest = ahead if soonest is None else min(soonest, ahead)
        flows = candidates.flows.get(running.kind)
        rival = None
        if flows is not None:
            rival = flows.first() if flows.first() != running.flow_key else flows.second()
        if rival is not None:
            account = self._flows[running.flow_key]
            ahead = (self._flows[rival].vruntime - account.vruntime) * account.weight
            soonest = ahead if soonest is None else min(soonest, ahead)
        return soonest

    def charge(self, job: Job, seconds: float) -> None:
        """The flow, and its kind, used the device (or caused a swap) for `seconds`."""
        account = self._flow(job.flow_key)
        account.vruntime += seconds / account.weight
        kind_account = self._kinds[job.kind]
        kind_account.vruntime += seconds / kind_account.weight
        self._inside[job.kind].rekey(account)
        self._top.rekey(kind_account)
        for model in self._models_of.get(job.flow_key, ()):
            self._place(model, job.flow_key)

    def advance(self, now: float) -> None:
        """Halves the vruntimes once for every period that has passed.

        Halved is what all have in common and what anyone is ahead by more than a turn. A lead within a turn is kept
        whole: two backlogged flows owe it to each other, and halving it would let the bound on the difference in
        their service drift (docs/adr/0008).
        """
        if self._next_halving is None:
            self._next_halving = now + self._config.halving_period_s
        if now < self._next_halving:
            return
        periods = 1 + int((now - self._next_halving) // self._config.halving_period_s)
        self._next_halving += periods * self._config.halving_period_s
        for _ in range(min(periods, MOST_HALVINGS)):
            self._halve(self._top, list(self._kinds.values()))
            for kind, level in self._inside.items():
                self._halve(level, [a for key, a in self._flows.items() if key[0] is kind])
        self._forget_idle()
        # Halving is monotonic, so the candidates' order stands; their keys must follow.
        for key, models in self._models_of.items():
            for model in models:
                self._place(model, key)

    def vruntimes(self) -> tuple[dict[LlmTaskKind, float], dict[str, float]]:
        """Of the kinds, and of the active flows keyed `kind/flow`; in seconds."""
        flows = {f"{k}/{f}": a.vruntime for (k, f), a in self._flows.items() if a.live_jobs}
        return {kind: account.vruntime for kind, account in self._kinds.items()}, flows

    def _halve(self, level: Level, accounts: list[Account]) -> None:
        floor = level.raise_floor()
        for account in accounts:
            lead = account.vruntime - floor
            if not account.live_jobs or lead <= 0:
                account.vruntime /= 2
            else:
                account.vruntime = floor / 2 + min(lead, (lead + self._band_s) / 2)
            level.rekey(account)
        level.floor = floor / 2

    def _forget_idle(self) -> None:
        """An idle flow at or below the floor would start at the floor anyway; past the limit the oldest go too."""
        idle = [key for key, account in self._flows.items() if not account.live_jobs]
        surplus = len(idle) - KEEP_FLOWS
        for at, key in enumerate(idle):
            if at < surplus or self._flows[key].vruntime <= self._inside[key[0]].floor:
                del self._flows[key]

    def _flow(self, key: FlowKey) -> Account:
        kind = key[0]
        if kind not in self._kinds:
            self._kinds[kind] = Account(len(self._kinds), weight=self._config.kind_weights.get(kind, 1.0))
            self._inside[kind] = Level()
        if key not in self._flows:
            self._flows[key] = Account(self._next_order())
        return self._flows[key]

    def _next_order(self) -> int:
        self._orders += 1
        return self._orders

    def _place(self, model: str, key: FlowKey) -> None:
        candidates = self._models[model]
        head = candidates.jobs[key].first()
        assert head is not None
        flows = candidates.flows.setdefault(key[0], IndexedHeap())
        flows.push(key, (self._flow(key).vruntime, head.arrival))

    def _kind_key(self, candidates: Candidates, kind: LlmTaskKind) -> tuple[float, int]:
        return (self._kinds[kind].vruntime, candidates.flows[kind].first_key()[1])
