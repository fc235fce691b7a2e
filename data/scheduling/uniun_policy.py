"""The UNIUN policy: strict tiers over a fair pool, with residence. The contract is docs/scheduler.md.

Strict bands over a fair class are POSIX SCHED_FIFO over CFS; T3 is earliest deadline first (Liu and Layland, 1973);
the shape is that of BROS (arXiv:2504.09590) and the accounting that of VTC (arXiv:2401.00588, arXiv:2501.14312).

Every live job, the running one included, sits in the indexes of its lead's model. A job that waits for another is
indexed like any other; when it is chosen, its lead runs. That is priority inheritance without a second rule.
Hoisted jobs stay in the indexes of the lower tiers too: those are looked at only when T0 and T1 are empty.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from data.scheduling.config import SchedulerConfig
from data.scheduling.events import SetForeground
from data.scheduling.fair_pool import POOL_KINDS, FairPool
from data.scheduling.heap import IndexedHeap
from data.scheduling.jobs import FlowKey, Job
from data.scheduling.line import Line, Sort
from data.scheduling.model_queue import ModelQueue
from data.scheduling.policy import Choice, TierQueue
from data.scheduling.residence import Residence
from data.scheduling.share import ExtractShare
from data.scheduling.turns import Served, TurnQueue
from domain.entities.llm import LlmTaskKind

CHAT, EXTRACT, API = LlmTaskKind.CHAT, LlmTaskKind.EXTRACT, LlmTaskKind.API

T0, T1, T2, T3, T4, T5 = range(6)

Placed = tuple[tuple[float, ...], Job]
"""What decides its place in a tier, and who it is."""

EPSILON_S = 1e-6
"""A vruntime must be strictly smaller to take over, so look just after the moment when they are equal."""


@dataclass(frozen=True, slots=True)
class Due:
    """A foreign model whose turn has come, and the job that has waited longest for it."""

    job: Job
    waited_s: float


class UniunPolicy:
    """Implements `Policy`. Decisions cost O(log n) in the jobs and O(m) in the models asked for."""

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self._served = Served()
        self._by_kind = {kind: TurnQueue(self._served) for kind in LlmTaskKind}
        self._models: dict[str, ModelQueue] = {}
        self._line = Line()
        self._deadlines: IndexedHeap[Job] = IndexedHeap()
        self._hints: dict[Job, None] = {}
        """Jobs whose hint ends when the surface is left."""
        self._pool = FairPool(config)
        self._share = ExtractShare(config)
        self._foreground: tuple[LlmTaskKind, str | None] | None = None

    @property
    def foreground(self) -> tuple[LlmTaskKind, str | None] | None:
        return self._foreground

    def configure(self, config: SchedulerConfig) -> None:
        """From now on."""
        self._config = config
        self._pool.configure(config)
        self._share.configure(config)

    # -- the lives of jobs

    def enter(self, job: Job, now: float) -> None:
        if job.kind in POOL_KINDS:
            self._pool.enter(job)
        self.restore(job, now)

    def leave(self, job: Job, now: float) -> None:
        self.withdraw(job)
        if job.kind in POOL_KINDS:
            self._pool.leave(job)
        if job.first_dispatch_at is not None and not job.spec.ahead:
            self._served.mark(job.flow_key)
            self._by_kind[job.kind].reorder(job.flow_key)
            for queue in self._models.values():
                queue.hinted.reorder(job.flow_key)

    def restore(self, job: Job, now: float) -> None:
        if not job.spec.ahead:
            self._by_kind[job.kind].add(job)
        if job.is_chat:
            self._line.add(job)
            return
        queue = self._models.get(job.lead.model)
        if queue is None:
            queue = self._models[job.lead.model] = ModelQueue(self._served)
        late = job.deadline is not None and job.deadline <= now and not job.spec.ahead
        if job.hinted:
            queue.hinted.add(job)
            queue.hinted_waits.push(job, (job.waiting_since, job.arrival))
            if job.kind is not API:
                self._hints[job] = None
        if job.spec.ahead:
            queue.ahead.push(job, job.arrival)
        elif job.kind is EXTRACT:
            queue.extract.push(job, job.arrival)
        elif late:
            job.overdue = True
            queue.overdue.push(job, (job.deadline, job.arrival))
        else:
            # A tier is inherited, a vruntime is not: who waits for a pool job leaves the turn to that job's own flow.
            if job.blocked_on is None or job.lead.kind not in POOL_KINDS:
                self._pool.add(job)
            if job.deadline is not None:
                self._deadlines.push(job, (job.deadline, job.arrival))
        since = job.waiting_since
        if late and job.deadline is not None and job.kind is not EXTRACT:
            since = min(since, job.deadline)
        queue.waits.push(job, (since, job.arrival))
        self._line.add(job)

    def withdraw(self, job: Job) -> None:
        self._line.discard(job)
        self._by_kind[job.kind].discard(job)
        self._hints.pop(job, None)
        queue = self._models.get(job.lead.model)
        if job.is_chat or queue is None:
            return
        queue.hinted.discard(job)
        queue.hinted_waits.discard(job)
        queue.extract.discard(job)
        queue.ahead.discard(job)
        queue.overdue.discard(job)
        queue.waits.discard(job)
        self._deadlines.discard(job)
        if job.kind in POOL_KINDS:
            self._pool.discard(job)
        if not queue.waits:
            del self._models[job.lead.model]

    def used(self, jobs: Sequence[Job], start: float, end: float) -> None:
        extracts = sum(job.kind is EXTRACT for job in jobs)
        self._share.add(start, end, jobs=len(jobs), extracts=extracts)
        for job in jobs:
            if job.kind in POOL_KINDS:
                self._pool.charge(job, end - start)

    def caused_swap(self, job: Job, seconds: float) -> None:
        if job.kind in POOL_KINDS:
            self._pool.charge(job, seconds)

    def set_foreground(self, event: SetForeground) -> None:
        left = self._foreground is not None and (event.kind is None or event.kind is not self._foreground[0])
        self._foreground = None if event.kind is None else (event.kind, event.subject)
        if left:
            for job in list(self._hints):
                self._line.discard(job)
                job.hinted = False
                self._line.add(job)
                queue = self._models[job.lead.model]
                queue.hinted.discard(job)
                queue.hinted_waits.discard(job)
            self._hints.clear()

    def advance(self, now: float) -> bool:
        self._pool.advance(now)
        while (job := self._deadlines.first()) is not None and self._deadlines.first_key()[0] <= now:
            self.withdraw(job)
            self.restore(job, now)
        return self._share.update(now)

    # -- decisions

    def choose(self, now: float, residence: Residence) -> Choice | None:
        if (chat := self._by_kind[CHAT].first()) is not None:
            return Choice(chat, T0, f"chat outranks all but model switches (flow {chat.spec.flow})")
        if (hoisted := self._choose_hoisted(now, residence)) is not None:
            return hoisted
        owed = residence.owed
        if owed is not None and owed.live and owed.lead.model == residence.model:
            return Choice(owed, self.tier(owed), f"model {residence.model} was loaded for it")
        return self._choose_background(now, residence)

    def preemption(self, running: Job, choice: Choice, now: float, residence: Residence) -> str | None:
        tier = self.tier(running)
        if choice.tier < tier:
            if tier == T5 and running.kind is EXTRACT:
                return f"share of extract used up, {choice.by.kind} is T{choice.tier}"
            return f"{choice.by.kind} (T{choice.tier}) outranks T{tier}"
        if choice.due and T2 <= tier <= T5:
            return choice.reason
        both_pool = tier == choice.tier == T4 and running.kind in POOL_KINDS and choice.by.kind in POOL_KINDS
        if both_pool and self._slice_end(running) <= now and self._pool.beats(choice.by, running):
            return f"slice of {self._config.fair_slice_s:g} s used, {choice.by.kind}/{choice.by.spec.flow} has had less"
        return None

    def tier(self, job: Job) -> int:
        if not job.waiters:
            return self._own_tier(job)
        best, stack = T5, [job]
        while stack and best > T0:
            seen = stack.pop()
            best = min(best, self._own_tier(seen))
            stack.extend(seen.waiters)
        return best

    def next_change(self, now: float, running: Sequence[Job], residence: Residence) -> float | None:
        soonest = now + EPSILON_S
        times: list[float] = []
        if self._deadlines:
            times.append(self._deadlines.first_key()[0])
        if len(self._by_kind[EXTRACT]):
            extracts = sum(job.kind is EXTRACT for job in running)
            change = self._share.next_change(now, slots=residence.slots, extracts=extracts)
            if change is not None:
                times.append(change)
        for job in running:
            if job.kind in POOL_KINDS and self.tier(job) == T4:
                ahead = self._pool.seconds_ahead(job, job.model)
                if ahead is not None and (ahead >= 0 or self._slice_end(job) > now):
                    times.append(max(self._slice_end(job), now + max(0.0, ahead) + EPSILON_S))
        linger = residence.linger_until(self._surface_kind) or 0.0
        for model, queue in self._models.items():
            if model == residence.model:
                continue
            cost = residence.cost(model)
            stay = residence.stays_until(model)
            times.append(max(queue.waits.first_key()[0] + cost, stay, linger))
            times.append(linger)
            if queue.hinted_waits:
                times.append(max(queue.hinted_waits.first_key()[0], residence.since) + cost)
        return min((max(t, soonest) for t in times if t > now), default=None)

    def order(
        self, residence: Residence, on_device: Collection[Job], most: int | None = None
    ) -> dict[int, TierQueue]:
        lines: dict[int, list[Iterable[Placed]]] = {tier: [] for tier in range(T5 + 1)}
        # Whom somebody more urgent waits for runs in that one's turn, not in its own flow's.
        raised: set[Job] = set()
        for job in self._line.leads():
            if (tier := self.tier(job)) != self._own_tier(job):
                raised.add(job)
                lines[tier].append(self._placed(tier, [job], residence, set()))
        flows: dict[tuple[int, FlowKey], list[Iterator[Job]]] = {}
        for sort, theirs in self._line.sorts.items():
            tier = self._sort_tier(sort, None)
            shown = self._foreground if self._foreground in theirs and not sort.ahead else None
            for key in theirs if tier <= T1 else filter(None, [shown]):
                jobs = theirs[key]
                turns = jobs.ordered() if sort.by_turns else iter(sorted(jobs, key=_by_rank))
                flows.setdefault((min(tier, T1), key), []).append(turns)
            if tier == T4:
                waiting = [jobs for key, jobs in theirs.items() if key != shown]
                lines[T4] += self._pool_turns(waiting, residence, raised, most)
        for (tier, _), parts in flows.items():
            lines[tier].append(self._placed(tier, heapq.merge(*parts, key=_by_rank), residence, raised))
        extract = T5 if self._share.exhausted else T2
        for queue in self._models.values():
            for tier, heap in ((T3, queue.overdue), (extract, queue.extract), (T5, queue.ahead)):
                lines[tier].append(self._placed(tier, self._own(heap, tier), residence, raised))
        begun: dict[int, list[Job]] = {}
        for job in self._line.begun:
            if not job.on_device:
                begun.setdefault(self.tier(job), []).append(job)
        return {
            tier: TierQueue(
                [job for _, job in islice(heapq.merge(*lines[tier]), most)], counts, begun.get(tier, [])
            )
            for tier, counts in self.census(on_device).items()
        }

    def _placed(
        self, tier: int, jobs: Iterable[Job], residence: Residence, without: set[Job]
    ) -> Iterator[Placed]:
        """Each with what decides its place in the tier; `jobs` are of one flow and in its order."""
        turn = 0
        for job in jobs:
            if job.on_device or job in without:
                continue
            foreign = job.lead.model != residence.model
            if tier <= T1:
                yield (turn, self._served.last(job.flow_key), job.arrival), job
            elif tier == T3:
                yield (foreign, job.deadline or 0.0, job.arrival), job
            elif tier == T4 and job.kind in POOL_KINDS:
                yield (foreign, turn, *self._pool.key(job)), job
            else:
                yield (foreign, 0, 0.0, 0.0, job.arrival) if tier == T4 else (foreign, job.arrival), job
            turn += 1

    def _pool_turns(
        self, flows: list[IndexedHeap[Job]], residence: Residence, raised: set[Job], most: int | None
    ) -> list[Iterable[Placed]]:
        """Of jobs for one model. Where flows abound, the first jobs of some of them are all that is asked for."""
        if most is not None and len(flows) >= most:
            heads, others = [], []
            for jobs in flows:
                head = jobs.first()
                if head is None or head.on_device or head in raised:
                    others.append(jobs)
                else:
                    heads.append((self._pool.key(head), head))
            if len(heads) >= most:
                first: list[Iterable[Job]] = [[head] for _, head in heapq.nsmallest(most, heads)]
                first += [jobs.ordered() for jobs in others]
                return [self._placed(T4, jobs, residence, raised) for jobs in first]
        return [self._placed(T4, jobs.ordered(), residence, raised) for jobs in flows]

    def _own(self, heap: IndexedHeap[Job], tier: int) -> Iterator[Job]:
        """Those that are of the tier themselves."""
        return (job for job in heap.ordered() if self._own_tier(job) == tier)

    def census(self, on_device: Collection[Job]) -> dict[int, Counter[tuple[LlmTaskKind, str]]]:
        found: dict[int, Counter[tuple[LlmTaskKind, str]]] = {tier: Counter() for tier in range(T5 + 1)}
        for sort, count in self._line.counts.items():
            found[self._sort_tier(sort, None)][sort.kind, sort.model] += count
        kind, flow = self._foreground or (None, None)
        if kind is not None and flow is not None:
            for sort, flows in self._line.sorts.items():
                jobs = len(flows.get((kind, flow), ()))
                found[self._sort_tier(sort, None)][sort.kind, sort.model] -= jobs
                found[self._sort_tier(sort, flow)][sort.kind, sort.model] += jobs
        for job in self._line.leads():
            found[self._own_tier(job)][job.kind, job.lead.model] -= 1
            found[self.tier(job)][job.kind, job.lead.model] += 1
        for job in on_device:
            found[self.tier(job)][job.kind, job.lead.model] -= 1
        return {tier: +counts for tier, counts in found.items() if any(counts.values())}

    def share(self, now: float, spent_s: float = 0.0, jobs: Iterable[Job] = ()) -> tuple[float, bool]:
        kinds = [job.kind for job in jobs]
        extract_s = spent_s * kinds.count(EXTRACT)
        value = self._share.value(now, busy_s=spent_s * len(kinds), extract_s=extract_s)
        return value, self._share.exhausted

    def vruntimes(self) -> tuple[dict[LlmTaskKind, float], dict[str, float]]:
        return self._pool.vruntimes()

    # -- parts of a decision

    @property
    def _surface_kind(self) -> LlmTaskKind | None:
        return self._foreground[0] if self._foreground is not None else None

    def _own_tier(self, job: Job) -> int:
        return self._tier_of(job.kind, job.hinted, job.overdue, job.spec.ahead, job.spec.flow)

    def _sort_tier(self, sort: Sort, flow: str | None) -> int:
        return self._tier_of(sort.kind, sort.hinted, sort.overdue, sort.ahead, flow)

    def _tier_of(self, kind: LlmTaskKind, hinted: bool, overdue: bool, ahead: bool, flow: str | None) -> int:
        """Of a job for which nobody waits; `flow` is none for one that is not the one looked at."""
        if kind is CHAT and not ahead:
            return T0
        if hinted:
            return T1
        if self._foreground is not None and not ahead:
            surface, subject = self._foreground
            if kind is surface and subject in (None, flow):
                return T1
        if ahead:
            return T5
        if kind is EXTRACT:
            return T5 if self._share.exhausted else T2
        return T3 if overdue else T4

    def _slice_end(self, running: Job) -> float:
        return running.dispatched_at + self._config.fair_slice_s

    def _choose_hoisted(self, now: float, residence: Residence) -> Choice | None:
        own = self._surface_job()
        local = self._models.get(residence.model) if residence.model is not None else None
        local_work = (local is not None and len(local.hinted) > 0) or (
            own is not None and own.lead.model == residence.model
        )
        best, reason = own, "what the user looks at"
        for model, queue in self._models.items():
            oldest = queue.hinted_waits.first()
            if oldest is None:
                continue
            if model == residence.model or not local_work:
                candidate = queue.hinted.first()
            elif now < max(oldest.waiting_since, residence.since) + residence.cost(model):
                continue
            else:
                candidate = oldest
            if candidate is not None and (best is None or self._turn(candidate) < self._turn(best)):
                best, reason = candidate, "somebody waits for it (hint)"
        return None if best is None else Choice(best, T1, reason)

    def _surface_job(self) -> Job | None:
        if self._foreground is None or self._foreground[0] is CHAT:
            return None
        kind, subject = self._foreground
        turns = self._by_kind[kind]
        return turns.first() if subject is None else turns.first_of((kind, subject))

    def _turn(self, job: Job) -> tuple[int, int]:
        return (self._served.last(job.flow_key), job.arrival)

    def _choose_background(self, now: float, residence: Residence) -> Choice | None:
        linger = residence.linger_until(self._surface_kind)
        lingers = linger is not None and now < linger
        local = self._best((residence.model,), "local work first") if residence.model is not None else None
        if lingers:
            return local
        due = self._due(now, residence)
        if due is not None:
            target = due.job.lead.model
            if local is None or now >= residence.stays_until(target):
                return Choice(
                    due.job, self.tier(due.job), f"model {target} due after {due.waited_s:.0f} s", due=True
                )
        if local is not None:
            return local
        return self._best(self._models, "nothing to do for the resident model")

    def _due(self, now: float, residence: Residence) -> Due | None:
        best: tuple[float, int] | None = None
        due: Due | None = None
        for model, queue in self._models.items():
            since, arrival = queue.waits.first_key()
            job = queue.waits.first()
            if job is None or model == residence.model or now < since + residence.cost(model):
                continue
            turn = (residence.waited_for_since(model, since), arrival)
            if best is None or turn < best:
                best, due = turn, Due(job, now - since)
        return due

    def _best(self, models: "tuple[str, ...] | dict[str, ModelQueue]", reason: str) -> Choice | None:
        """By tier over some models: T2, T3, T4, T5."""
        queues = [(model, self._models[model]) for model in models if model in self._models]
        extracts = [q.extract.first() for _, q in queues]
        extract = min((j for j in extracts if j is not None), key=lambda j: j.arrival, default=None)
        if extract is not None and not self._share.exhausted:
            return Choice(extract, T2, f"extract before the fair pool; {reason}")
        late = [q.overdue.first() for _, q in queues]
        overdue = min((j for j in late if j is not None), key=lambda j: (j.deadline, j.arrival), default=None)
        if overdue is not None:
            return Choice(overdue, T3, f"its deadline has passed; {reason}")
        heads = [self._pool.first(model) for model, _ in queues]
        fair = min((j for j in heads if j is not None), key=self._pool.key, default=None)
        if fair is not None:
            return Choice(fair, T4, f"smallest vruntime; {reason}")
        if extract is not None:
            return Choice(extract, T5, f"share of extract used up, but nothing better to do; {reason}")
        prompts = [q.ahead.first() for _, q in queues]
        ahead = min((j for j in prompts if j is not None), key=lambda j: j.arrival, default=None)
        return (
            None
            if ahead is None
            else Choice(ahead, T5, f"a prompt read ahead, nothing better to do; {reason}")
        )


def _by_rank(job: Job) -> tuple[int, int]:
    """The order inside a flow."""
    return (job.spec.rank, job.arrival)
