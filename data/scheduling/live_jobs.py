"""The jobs that have not ended and everybody who waits for them: how each comes in, is put back, and ends."""

from typing import Any

from data.scheduling.admission import Admission
from data.scheduling.events import Cause, End, Outcome, Release
from data.scheduling.jobs import Job, JobSpec, Phase
from data.scheduling.log import StepLog
from data.scheduling.policy import Policy


class LiveJobs:
    """Keeps the policy and the limits in step with what is queued. Knows nothing of the device."""

    def __init__(self, policy: Policy, admission: Admission, log: StepLog) -> None:
        self._policy = policy
        self._admission = admission
        self._log = log
        self.jobs: dict[str, Job] = {}
        """By their own id."""
        self.callers: dict[str, Job] = {}
        """By the id of everybody who waits for their result."""
        self._by_model: dict[str, dict[Job, None]] = {}
        self._arrivals = 0

    def take(self, spec: JobSpec) -> None:
        """As a job of its own, as one more caller of another, or not at all. Raises `ValueError` for an id in use."""
        now = self._log.now
        if spec.id in self.callers:
            raise ValueError(f"a request with the id {spec.id!r} is already live")
        blocker = self.callers.get(spec.waits_for) if spec.waits_for is not None else None
        if (refusal := self._admission.refusal(spec, blocker)) is not None:
            refused = Job(spec, self._arrivals + 1, now, {})
            refused.overdue = spec.deadline is not None and spec.deadline <= now
            self._log.job("rejected", refused, error=refusal.error)
            self._log.instruct(refusal)
            return
        if (leader := self._admission.leader(spec)) is not None:
            self._join(leader, spec)
            return
        self._arrivals += 1
        job = Job(spec, self._arrivals, now, {spec.id: spec})
        if blocker is not None:
            job.blocked_on, job.lead, job.wait_depth = blocker, blocker.lead, blocker.wait_depth + 1
            blocker.waiters[job] = None
        self.jobs[spec.id] = job
        self._by_model.setdefault(spec.model, {})[job] = None
        self.callers[spec.id] = job
        self._admission.count(job.flow_key, +1)
        self._admission.open(job)
        self._policy.enter(job, now)
        job.tell(now, "submitted")
        self._log.job("submit", job)

    def on_model(self, model: str) -> tuple[Job, ...]:
        """Those that target it."""
        return tuple(self._by_model.get(model, ()))

    def start(self, job: Job) -> None:
        """It leaves the queue for the device, and nobody joins it any more."""
        self._admission.count(job.flow_key, -len(job.callers))
        self._admission.close(job)
        job.phase = Phase.RUNNING

    def put_back(self, job: Job, line: str) -> None:
        """From the device into the queue, in its old place; `line` is for its story."""
        now = self._log.now
        job.tell(now, line)
        self._policy.withdraw(job)
        job.phase = Phase.QUEUED
        job.waiting_since = now
        self._policy.restore(job, now)
        self._admission.count(job.flow_key, len(job.callers))
        self._admission.open(job)

    def end(self, job: Job, outcome: Outcome, cause: Cause = Cause.NONE, error: str = "") -> None:
        """For everybody who waits for it."""
        for caller in list(job.callers):
            self.end_caller(job, caller, outcome, cause, error)
        self._policy.leave(job, self._log.now)
        job.phase = Phase.ENDED
        job.tell(self._log.now, outcome.value)
        self._admission.close(job)
        if job.blocked_on is not None:
            job.blocked_on.waiters.pop(job, None)
        del self.jobs[job.id]
        targets = self._by_model[job.model]
        del targets[job]
        if not targets:
            del self._by_model[job.model]
        self._free_waiters(job)
        self._log.instruct(Release(job.id))

    def end_caller(
        self, job: Job, caller: str, outcome: Outcome, cause: Cause = Cause.NONE, error: str = ""
    ) -> None:
        """One of several goes, or each of them when the job is over."""
        fields: dict[str, Any] = {}
        if outcome is Outcome.FINISHED:
            fields = {
                "service_s": job.service_s,
                "preemptions": job.preemptions,
                "tokens_done": job.tokens_done,
            }
        elif outcome is Outcome.FAILED:
            fields = {"error": error}
        self._log.job(outcome.value, job, caller=caller, **fields)
        del job.callers[caller]
        del self.callers[caller]
        if job.phase is Phase.QUEUED:
            self._admission.count(job.flow_key, -1)
        self._log.instruct(End(caller, job.id, outcome, cause, error))

    def _free_waiters(self, ended: Job) -> None:
        """Whoever waited for the job now leads its own chain."""
        now = self._log.now
        for head in list(ended.waiters):
            head.blocked_on = None
            chain = [head]
            for job in chain:
                self._policy.withdraw(job)
                job.lead = head
                job.wait_depth = 0 if job.blocked_on is None else job.blocked_on.wait_depth + 1
                self._policy.restore(job, now)
                chain.extend(job.waiters)
        ended.waiters.clear()

    def _join(self, leader: Job, spec: JobSpec) -> None:
        """A second request for the same work: one run, both get the result, the more urgent wish counts."""
        now = self._log.now
        self._policy.withdraw(leader)
        leader.join(spec)
        self._policy.restore(leader, now)
        self.callers[spec.id] = leader
        self._admission.count(leader.flow_key, +1)
        leader.tell(now, f"joined by {spec.id}")
        self._log.job("submit", leader, caller=spec.id, joined=leader.told_as)
