"""Tuning the scheduler while it runs: the very next decision goes by it."""

from data.scheduling import events as ev
from data.scheduling.config import SchedulerConfig
from data.scheduling.jobs import JobSpec
from data.scheduling.scheduler import InferenceScheduler
from domain.entities.llm import LlmTaskKind
from tests.data.scheduling.scheduler_driver import Driver

EXTRACT, GANA, CHAT = LlmTaskKind.EXTRACT, LlmTaskKind.GANA, LlmTaskKind.CHAT


def driver(config: SchedulerConfig | None = None) -> Driver:
    made = Driver(InferenceScheduler(config or SchedulerConfig(), resident="m"))
    made.resident = "m"
    return made


def tune(driver: Driver, **fields: float) -> ev.Step:
    config = driver.scheduler.config.model_copy(update=fields)
    return driver.scheduler.handle(ev.Configure(driver.now, config))


def job(name: str, kind: LlmTaskKind, flow: str = "f") -> JobSpec:
    return JobSpec(id=name, kind=kind, flow=flow, model="m")


def test_a_smaller_share_takes_the_device_from_extract_at_once_and_a_larger_one_gives_it_back() -> None:
    made = driver()
    made.submit(job("e", EXTRACT))
    made.submit(job("g", GANA))
    made.advance(30.0)  # of the 60 s that a share counts at least: half
    assert set(made.on_device) == {"e"}
    step = tune(made, extract_share=0.4, extract_resume_share=0.38)
    assert [one.reason for one in step.instructions if isinstance(one, ev.Stop)] == [
        "share of extract used up, gana is T4"
    ]
    assert [record.event for record in step.records] == ["configure", "share", "preempt"]
    assert step.records[0].fields == {
        "fair_slice_s": 30.0,
        "extract_share": 0.4,
        "extract_resume_share": 0.38,
        "linger_surface_s": 300.0,
    }
    tune(made, extract_share=0.9, extract_resume_share=0.85)
    extract = made.scheduler.jobs["e"]
    assert made.scheduler.policy.tier(extract) == 2


def test_a_shorter_slice_ends_the_turn_that_is_under_way() -> None:
    made = driver()
    made.submit(job("one", GANA, "one"))
    made.submit(job("two", GANA, "two"))
    made.advance(10.0)
    assert set(made.on_device) == {"one"}
    step = tune(made, fair_slice_s=5.0)
    (stop,) = [one for one in step.instructions if isinstance(one, ev.Stop)]
    assert stop.reason == "slice of 5 s used, gana/two has had less"


def test_the_stay_with_a_chat_is_counted_by_the_new_length() -> None:
    made = driver()
    made.surface(CHAT, "f")
    made.submit(job("c", CHAT))
    made.advance(1.0)
    made.boundary(3, finish=True)
    assert made.scheduler.residence.linger_until(CHAT) == 301.0
    tune(made, linger_surface_s=60.0)
    assert made.scheduler.residence.linger_until(CHAT) == 61.0
