"""The scheduler's counters for Prometheus."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from domain.entities.scheduler import Histogram, SchedulerMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BY_KIND = ("submitted", "finished", "cancelled", "failed", "rejected")


class SchedulerCollector(Collector):
    """Reads the counters when it is scraped; keeps nothing."""

    def __init__(self, metrics: Callable[[], SchedulerMetrics]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        seen = self._metrics()
        yield from _queues(seen)
        yield from _kinds(seen)
        yield _counter("uniun_preemptions", "Times that a running job gave way.", seen.preemptions)
        yield _counter("uniun_swaps", "Loads of a model, failed ones included.", seen.swaps)
        yield _counter("uniun_swaps_failed", "Loads of a model that failed.", seen.swaps_failed)
        yield _counter("uniun_swap_seconds", "Time spent loading models.", seen.swap_s)
        yield _counter("uniun_engine_restarts", "Times that the engine was lost.", seen.engine_restarts)
        yield GaugeMetricFamily("uniun_running_jobs", "Jobs on the device now.", seen.running)
        yield GaugeMetricFamily(
            "uniun_extract_share", "Extraction's part of the recent busy time.", seen.extract_share
        )
        yield GaugeMetricFamily(
            "uniun_extract_share_limit", "Above this share it ranks last.", seen.extract_share_limit
        )


def exposition(metrics: Callable[[], SchedulerMetrics]) -> bytes:
    """Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SchedulerCollector(metrics))
    return generate_latest(registry)


def _queues(seen: SchedulerMetrics) -> Iterator[Metric]:
    labels = ["kind", "tier"]
    queued = GaugeMetricFamily("uniun_queued_jobs", "Jobs that wait.", labels=labels)
    wait = HistogramMetricFamily("uniun_wait_seconds", "Submission to first dispatch.", labels=labels)
    first = HistogramMetricFamily("uniun_first_token_seconds", "Submission to first token.", labels=labels)
    gave_way = CounterMetricFamily(
        "uniun_tier_preemptions", "Times that a job gave way, by its kind and tier.", labels=labels
    )
    for queue in seen.queues:
        names = [queue.kind.value, str(queue.tier)]
        queued.add_metric(names, queue.queued)
        wait.add_metric(names, _buckets(queue.wait), queue.wait.sum_s)
        first.add_metric(names, _buckets(queue.first_token), queue.first_token.sum_s)
        gave_way.add_metric(names, queue.preemptions)
    yield from (queued, wait, first, gave_way)


def _kinds(seen: SchedulerMetrics) -> Iterator[Metric]:
    jobs = CounterMetricFamily("uniun_jobs", "Requests by what became of them.", labels=["kind", "outcome"])
    tokens = CounterMetricFamily("uniun_tokens", "Tokens produced.", labels=["kind"])
    service = CounterMetricFamily("uniun_device_seconds", "Device time used.", labels=["kind"])
    for kind in seen.kinds:
        for outcome in _BY_KIND:
            jobs.add_metric([kind.kind.value, outcome], getattr(kind, outcome))
        tokens.add_metric([kind.kind.value], kind.tokens)
        service.add_metric([kind.kind.value], kind.service_s)
    yield from (jobs, tokens, service)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    below = [
        (str(float(bound)), float(n)) for bound, n in zip(histogram.bounds_s, histogram.counts, strict=True)
    ]
    return [*below, ("+Inf", float(histogram.count))]


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value)
