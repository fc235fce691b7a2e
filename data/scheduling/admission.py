"""Who may join the queue: limits, and requests for the same work that become one."""

from data.scheduling.config import SchedulerConfig
from data.scheduling.events import Cause, End, Outcome
from data.scheduling.jobs import FlowKey, Job, JobSpec
from domain.counting import counted
from domain.entities.llm import LlmTaskKind


class Admission:
    """Counts who waits, and knows which queued job a second request for the same work joins."""

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self._joinable: dict[tuple[str, LlmTaskKind, str], Job] = {}
        self.waiting = 0
        """Callers whose job is queued."""
        self._by_flow: dict[FlowKey, int] = {}

    def configure(self, config: SchedulerConfig) -> None:
        """From now on."""
        self._config = config

    def refusal(self, spec: JobSpec, blocker: Job | None) -> End | None:
        """Why the request cannot be queued; none if it can. `blocker` is the live job it waits for."""
        config = self._config
        if self.waiting >= config.max_queued:
            return self._full(spec, config.max_queued, self.waiting, None)
        depth = self._by_flow.get((spec.kind, spec.flow), 0)
        if depth >= config.max_queued_per_flow:
            return self._full(spec, config.max_queued_per_flow, depth, f"{spec.kind}/{spec.flow}")
        if blocker is not None and blocker.wait_depth + 1 > config.max_wait_depth:
            error = (
                f"it waits for {spec.waits_for}, which ends a chain of {config.max_wait_depth} jobs already"
            )
            return End(spec.id, spec.id, Outcome.REJECTED, Cause.INVALID, error)
        return None

    def count(self, flow: FlowKey, change: int) -> None:
        """So many more callers of the flow wait."""
        self.waiting += change
        left = self._by_flow.get(flow, 0) + change
        if left:
            self._by_flow[flow] = left
        else:
            self._by_flow.pop(flow, None)

    def leader(self, spec: JobSpec) -> Job | None:
        """The queued job that already does this work."""
        return (
            None
            if spec.coalesce_key is None or spec.ahead
            else self._joinable.get(self._key(spec, spec.coalesce_key))
        )

    def open(self, job: Job) -> None:
        """Others may join the job while it is queued."""
        if job.spec.coalesce_key is not None and not job.spec.ahead:
            self._joinable.setdefault(self._key(job.spec, job.spec.coalesce_key), job)

    def close(self, job: Job) -> None:
        """Nobody may join it any more: it runs, or has ended."""
        if job.spec.coalesce_key is not None and self.leader(job.spec) is job:
            del self._joinable[self._key(job.spec, job.spec.coalesce_key)]

    @staticmethod
    def _key(spec: JobSpec, coalesce_key: str) -> tuple[str, LlmTaskKind, str]:
        return (coalesce_key, spec.kind, spec.model)

    @staticmethod
    def _full(spec: JobSpec, limit: int, depth: int, flow: str | None) -> End:
        where = f"the queue of {flow}" if flow else "the queue"
        error = f"{where} is full: {counted(depth, 'job waits', 'jobs wait')}, the limit is {limit}"
        return End(spec.id, spec.id, Outcome.REJECTED, Cause.QUEUE_FULL, error, limit, depth, flow)
