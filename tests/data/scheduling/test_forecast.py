"""How far off the estimated starts are, on the simulator: near where nothing comes in later, far where it does."""

from collections import defaultdict
from random import Random
from typing import Any

from data.scheduling import events as ev
from data.scheduling.config import SchedulerConfig
from data.scheduling.inspection import gauges, snapshot
from data.scheduling.jobs import JobSpec
from data.scheduling.scenario import Scenario
from data.scheduling.scheduler import InferenceScheduler
from data.scheduling.simulation import Simulation
from domain.entities.llm import LlmTaskKind
from presentation.web.scheduler_html import queue_html

MODEL = {"load_s": 5, "prefill_tps": 500, "decode_tps": 20}
Asked = tuple[float, str, float]


def backlog(seed: int, *, chats: int) -> Scenario:
    """60 jobs of five flows at once, each 4 to 14 s long; then chats, if any, over the ten minutes that it takes."""
    rng = Random(seed)
    events: list[dict[str, Any]] = []

    def submit(at: float, kind: str, flow: str) -> None:
        spec = {"id": f"j{len(events)}", "kind": kind, "flow": flow, "model": "X"}
        sizes = {"prompt_tokens": rng.randrange(100, 600), "output_tokens": rng.randrange(80, 260)}
        events.append({"at": at, "submit": spec | sizes})

    for n in range(60):
        kind, flow = rng.choice(
            [("gana", "a"), ("gana", "b"), ("nataraj", "deck"), ("api", "k"), ("extract", f"n{n}")]
        )
        submit(0.0, kind, flow)
    for _ in range(chats):
        submit(rng.uniform(0, 500), "chat", "c")
    return Scenario.model_validate({"models": {"X": MODEL}, "loaded": "X", "events": events})


def errors(load: Scenario, after_s: float = 60.0) -> list[tuple[float, float]]:
    """Estimated and actual seconds to the next start, of every waiting job, every 10 s; the first minute is for learning."""
    asked: list[Asked] = []
    looked_at = after_s - 10.0

    def look(scheduler: InferenceScheduler) -> None:
        nonlocal looked_at
        if scheduler.now >= looked_at + 10.0:
            looked_at = scheduler.now
            view = snapshot(scheduler, scheduler.now)
            asked.extend(
                (view.at, job.id, job.estimated_start_s) for jobs in view.tiers.values() for job in jobs
            )

    simulation = Simulation(load, on_step=look)
    simulation.run()
    starts: dict[str, list[float]] = defaultdict(list)
    for line in simulation.trace:
        if line["event"] == "dispatch":
            starts[line["job"]].append(line["t"])
    found = []
    for at, name, estimate in asked:
        later = [start for start in starts[name] if start >= at - 1e-6]
        if later:
            found.append((estimate, later[0] - at))
    return found


def near(found: list[tuple[float, float]]) -> float:
    """The part of the estimates within a third of the truth, or 10 s."""
    return sum(abs(actual - said) <= max(10.0, actual / 3) for said, actual in found) / len(found)


def late(found: list[tuple[float, float]]) -> float:
    """How much later than said jobs start, on average, as a part of what was said."""
    return sum(actual for _, actual in found) / sum(said for said, _ in found) - 1


def test_where_nothing_comes_in_later_estimates_are_near_more_often_than_not() -> None:
    found = [pair for seed in range(5) for pair in errors(backlog(seed, chats=0))]
    assert len(found) > 1_000
    assert near(found) >= 0.55
    assert abs(late(found)) <= 0.2


def test_what_comes_in_later_makes_jobs_start_later_than_said() -> None:
    calm = [pair for seed in range(5) for pair in errors(backlog(seed, chats=0))]
    crowded = [pair for seed in range(5) for pair in errors(backlog(seed, chats=40))]
    assert late(calm) < late(crowded) <= 1.5


def test_an_estimate_counts_down_and_is_never_as_good_as_over() -> None:
    scheduler = InferenceScheduler(resident="X")
    for name in ("a", "b", "c"):
        scheduler.handle(ev.Submit(0.0, JobSpec(id=name, kind=LlmTaskKind.CHAT, flow=name, model="X")))

    def starts(at: float) -> list[float]:
        return [job.estimated_start_s for job in snapshot(scheduler, at).tiers[0]]

    # Five seconds are assumed of each as long as none has ended.
    assert starts(0.0) == [5.0, 10.0]
    assert starts(3.0) == [2.0, 7.0]
    assert starts(4.0) == [1.0, 6.0]
    assert starts(40.0) == [10.0, 15.0]


def test_a_snapshot_counts_what_runs_up_to_the_moment() -> None:
    scheduler = InferenceScheduler(resident="X")
    scheduler.handle(ev.Submit(0.0, JobSpec(id="g", kind=LlmTaskKind.GANA, flow="a", model="X", weight=2.0)))
    view = snapshot(scheduler, 30.0)
    assert view.running is not None
    assert view.running.service_s == 30.0
    assert view.kind_vruntime_s == {LlmTaskKind.GANA: 30.0}
    assert view.flow_vruntime_s == {"gana/a": 15.0}
    scheduler.handle(ev.Completed(30.0, "g", 10))
    scheduler.handle(ev.Submit(30.0, JobSpec(id="e", kind=LlmTaskKind.EXTRACT, flow="n", model="X")))
    assert snapshot(scheduler, 60.0).extract_share == 0.5
    scheduler.handle(ev.Tick(60.0))
    assert snapshot(scheduler, 60.0).extract_share == 0.5
    assert gauges(scheduler, 60.0).extract_share == 0.5


def test_a_snapshot_of_ten_thousand_shows_the_first_of_each_tier_and_counts_the_rest() -> None:
    scheduler = InferenceScheduler(SchedulerConfig(max_queued_per_flow=10_000), resident="X")
    for n in range(10_000):
        kind = LlmTaskKind.EXTRACT if n % 2 else LlmTaskKind.GANA
        scheduler.handle(ev.Submit(n * 1e-3, JobSpec(id=f"j{n}", kind=kind, flow=f"f{n % 50}", model="X")))
    view = snapshot(scheduler, 20.0)
    assert view.queued == {2: 5_000, 4: 4_999}
    assert {tier: len(jobs) for tier, jobs in view.tiers.items()} == {2: 100, 4: 100}
    assert [job.position for job in view.tiers[2][:3]] == [1, 2, 3]
    assert len(queue_html(view)) < 20_000
