"""Scenarios that are wrong, or written to do harm: each is refused with file, line and reason, and quickly."""

import pytest

from data.scheduling.scenario import parse_scenario
from data.scheduling.simulation import ScenarioSimulator
from domain.errors import ScenarioError

HEAD = "models:\n  X: {}\nevents:\n"
JOB = "id: a, kind: gana, flow: f, model: X, prompt_tokens: 1, output_tokens: 1"


def job(change: str = "", **replaced: str) -> str:
    """A scenario whose only event, on line 4, is a changed job."""
    fields = dict(part.split(": ") for part in JOB.split(", ")) | replaced
    text = ", ".join(f"{key}: {value}" for key, value in fields.items() if value)
    return f"{HEAD}  - {{at: 0, submit: {{{text}{change}}}}}\n"


MALFORMED = {
    "empty": ("", 1, "empty"),
    "no mapping": ("- 1\n", 1, "a group of named values"),
    "no models": ("events: []\n", 1, "models: it is missing"),
    "no events": ("models: {X: {}}\n", 1, "events: it is missing"),
    "models empty": ("models: {}\nevents: []\n", 1, "models"),
    "not YAML": ("models: {X: {}\nevents: [\n", 2, "not YAML or JSON"),
    "tab as indent": ("models:\n\tX: {}\n", 2, "not YAML or JSON"),
    "unknown key": ("models: {X: {}}\nfoo: 1\nevents: []\n", 2, "foo"),
    "unknown policy": ("models: {X: {}}\npolicy: best\nevents: []\n", 2, "unknown policy"),
    "unknown loaded": ("models: {X: {}}\nloaded: Z\nevents: []\n", 2, "unknown model"),
    "unknown config": ("models: {X: {}}\nconfig:\n  slice: 3\nevents: []\n", 3, "slice"),
    "speed 0": ("models:\n  X: {decode_tps: 0}\nevents: []\n", 2, "greater than or equal"),
    "load below 0": ("models:\n  X: {load_s: -1}\nevents: []\n", 2, "greater than or equal"),
    "until below 0": ("models: {X: {}}\nevents: []\nuntil: -3\n", 3, "until"),
    "slice below 0": ("models: {X: {}}\nconfig: {fair_slice_s: -1}\nevents: []\n", 2, "fair_slice_s"),
    "chunk 0": (
        "models: {X: {}}\nconfig: {prefill_chunk_tokens: 0}\nevents: []\n",
        2,
        "prefill_chunk_tokens",
    ),
    "unknown kind": (job(kind="poem"), 4, "kind"),
    "switch as kind": (job(kind="model_switch"), 4, "never inference"),
    "unknown model": (job(model="Z"), 4, "unknown model"),
    "no id": (job(id=""), 4, "id: it is missing"),
    "no flow": (job(flow=""), 4, "flow: it is missing"),
    "tokens below 0": (job(prompt_tokens="-1"), 4, "prompt_tokens"),
    "tokens in words": (job(output_tokens="many"), 4, "output_tokens"),
    "half a token": (job(output_tokens="1.5"), 4, "output_tokens"),
    "weight 0": (job(", weight: 0"), 4, "weight"),
    "NaN deadline": (job(", deadline: .nan"), 4, "finite"),
    "unknown field": (job(", priority: 1"), 4, "priority"),
    "waits for itself": (job(", waits_for: a"), 4, "no other event submits"),
    "waits for nobody": (job(", waits_for: b"), 4, "no other event submits"),
    "speed that takes for ever": ("models:\n  X: {prefill_tps: 1e-320}\nevents: []\n", 2, "prefill_tps"),
    "the same id twice": (job() + job().splitlines()[-1] + "\n", 5, "used by event 0 already"),
    "key twice": ("models: {X: {}}\nmodels: {Y: {}}\nevents: []\n", 2, "twice"),
    "no at": (f"{HEAD}  - {{cancel: a}}\n", 4, "at: it is missing"),
    "NaN at": (f"{HEAD}  - {{at: .nan, cancel: a}}\n", 4, "finite"),
    "at below 0": (f"{HEAD}  - {{at: -1, cancel: a}}\n", 4, "at"),
    "nothing happens": (f"{HEAD}  - {{at: 0}}\n", 4, "exactly one"),
    "two things happen": (f"{HEAD}  - {{at: 0, cancel: a, foreground: null}}\n", 4, "exactly one"),
    "cancel of nothing": (f"{HEAD}  - {{at: 0, cancel: null}}\n", 4, "empty"),
    "cancel of nobody": (f"{HEAD}  - {{at: 0, cancel: z}}\n", 4, "no event submits"),
    "surface of no kind": (f"{HEAD}  - {{at: 0, foreground: {{kind: tv}}}}\n", 4, "kind"),
    "switch to nowhere": (f"{HEAD}  - {{at: 0, switch_model: {{model: Z}}}}\n", 4, "unknown model"),
    "in JSON": ('{"models": {"X": {}},\n"events": [\n{"at": 0,\n"cancel": "z"}]}', 4, "no event submits"),
    "in JSON with tabs": (
        '{\n\t"models": {"X": {}},\n\t"events": [\n\t\t{"at": -1, "cancel": "z"}]}',
        4,
        "at",
    ),
    "JSON that YAML cannot read": (
        '{"name": "\\ud83d\\ude00", "models": {"X": {}},\n"events": 1}',
        2,
        "events",
    ),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_scenario_is_refused_with_file_line_and_reason(what: str) -> None:
    text, line, reason = MALFORMED[what]
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, "load.yaml")
    assert str(refused.value).startswith(f"load.yaml:{line}: ")
    assert reason in str(refused.value)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

HOSTILE = {
    "alias bomb": BOMB,
    "an alias of itself": "&a [*a]",
    "merge keys": "a: &a {x: 1}\nmodels: {<<: *a}\n",
    "100,000 open brackets": "[" * 100_000,
    "100,000 levels of lists": "[" * 100_000 + "]" * 100_000,
    "100,000 levels of JSON": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "100,000 levels of dashes": "- " * 100_000,
    "1,500 levels of blocks": "".join(" " * depth + "a:\n" for depth in range(1500)),
    "an integer of 5,000 digits": job(prompt_tokens="9" * 5000),
    "an integer of 5,000 digits in JSON": '{"models": {"X": {}}, "events": [{"at": ' + "9" * 5000 + "}]}",
    "an infinite number": '{"models": {"X": {}}, "events": [{"at": 1e400, "cancel": "a"}]}',
    "control characters": "".join(map(chr, range(256))),
    "a zero byte": "models: {X: {}}\nevents: []\n\x00",
    "a lone surrogate": '{"models": {"X": {}}, "events": [{"at": 0, "cancel": "\\ud800"}]}',
    "code in a tag": '!!python/object/apply:os.system ["echo harm"]',
    "a list as a key": "? [a]\n: 1\n",
    "two documents": "models: {X: {}}\nevents: []\n---\nmodels: {}\n",
    "an impossible date": f"{HEAD}  - {{at: 2001-99-99, cancel: a}}\n",
    "an id of 300 letters": job(id="a" * 300),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_scenario_is_refused_like_any_other(what: str) -> None:
    with pytest.raises(ScenarioError, match=r"^load\.yaml:\d+: "):
        ScenarioSimulator().simulate(HOSTILE[what], "load.yaml")


def test_ids_may_be_numbers_and_events_in_any_order() -> None:
    text = (
        "models: {1: {}}\nloaded: 1\nevents:\n"
        "  - {at: 5, cancel: 7}\n"
        "  - {at: 0, submit: {id: 7, kind: gana, flow: 1, model: 1, prompt_tokens: 10, output_tokens: 1000}}\n"
    )
    trace = ScenarioSimulator().simulate(text, "load.yaml").trace
    assert [line["event"] for line in trace][-2:] == ["cancelled", "summary"]
