"""At the ends of what the configuration accepts the numbers still hold: no overflow, no NaN, every invariant."""

from annotated_types import Ge, Le
from hypothesis import given, settings
from hypothesis import strategies as st

from data.scheduling.scenario import Scenario, ScenarioConfig
from data.scheduling.simulation import simulate_checked

MODELS = {name: {"prefill_tps": 1e3, "decode_tps": 50} for name in "XY"}


def job(at: float, name: str, kind: str, model: str = "X", **more: float) -> dict[str, object]:
    submit = {"id": name, "kind": kind, "flow": name, "model": model, "prompt_tokens": 200}
    return {"at": at, "submit": {**submit, "output_tokens": 300, **more}}


EVENTS = [
    job(0, "n1", "nataraj"),
    job(1, "g1", "gana"),
    job(2, "g2", "gana", "Y", deadline=30),
    job(2, "e1", "extract"),
    job(3, "e2", "extract", "Y"),
    job(5, "c1", "chat"),
    job(6, "n2", "nataraj", weight=0.001),
    {"at": 7, "foreground": {"kind": "chat", "subject": "c1"}},
    {"at": 9, "foreground": None},
]


def ends(field: str) -> list[float]:
    info = ScenarioConfig.model_fields[field]
    bounds = [m.ge if isinstance(m, Ge) else m.le for m in info.metadata if isinstance(m, Ge | Le)]
    return [float(bound) for bound in bounds if isinstance(bound, int | float)]


NUMBERS = [name for name, info in ScenarioConfig.model_fields.items() if info.annotation is float]


def test_every_number_has_two_ends() -> None:
    assert len(NUMBERS) >= 9
    open_above = {"swap_fraction"}  # below 1, not 1
    for name in NUMBERS:
        assert len(ends(name)) == 2 or name in open_above


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries({}, optional={name: st.sampled_from(ends(name)) for name in NUMBERS}),
    st.dictionaries(st.sampled_from(["gana", "nataraj", "extract"]), st.sampled_from([0.001, 1000.0])),
)
def test_no_accepted_configuration_breaks_the_scheduler(
    numbers: dict[str, float], weights: dict[str, float]
) -> None:
    if "extract_share" in numbers:
        numbers["extract_resume_share"] = numbers["extract_share"]
    if numbers.get("extract_resume_share", 0.0) > numbers.get("extract_share", 0.6):
        del numbers["extract_resume_share"]
    if numbers.get("swap_fraction") == 1:
        del numbers["swap_fraction"]
    config = {**numbers, "kind_weights": weights}
    scenario = {"models": MODELS, "loaded": "X", "config": config, "events": EVENTS, "until": 2_000}
    simulate_checked(Scenario.model_validate(scenario))
