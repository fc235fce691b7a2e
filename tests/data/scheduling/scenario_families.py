"""Random scenarios by family, each family a kind of trouble. The same seed gives the same scenario."""

from collections.abc import Callable
from random import Random
from typing import Any

from data.scheduling.scenario import Scenario

Events = list[dict[str, Any]]


class Writer:
    """Collects the events of one scenario."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.events: Events = []
        self.ids: list[str] = []

    def submit(self, at: float, kind: str, flow: str, model: str = "X", **more: Any) -> str:
        rng = self.rng
        job = f"{kind[0]}{len(self.ids)}"
        self.ids.append(job)
        tokens = {
            "prompt_tokens": rng.choice([0, 1, 60, 128, 300, 700]),
            "output_tokens": rng.choice([0, 1, 9, 40, 200]),
        }
        self.events.append(
            {"at": at, "submit": {"id": job, "kind": kind, "flow": flow, "model": model, **tokens, **more}}
        )
        return job

    def add(self, at: float, **what: Any) -> None:
        self.events.append({"at": at, **what})

    def time(self, span: float) -> float:
        """Often a round moment, so that things coincide."""
        at = self.rng.uniform(0, span)
        return round(at) if self.rng.random() < 0.5 else round(at, 3)


def chats_over_backlog(w: Writer) -> dict[str, Any]:
    for n in range(w.rng.randrange(3, 15)):
        w.submit(w.time(20), w.rng.choice(["nataraj", "gana", "api"]), f"f{n % 3}")
    for n in range(w.rng.randrange(1, 12)):
        w.submit(w.time(120), "chat", f"conv{n % 2}")
    return {}


def backlogged_flows(w: Writer) -> dict[str, Any]:
    flows = w.rng.randrange(2, 4)
    for flow in range(flows):
        kind = w.rng.choice(["gana", "gana", "nataraj"])
        for _ in range(w.rng.randrange(1, 6)):
            w.submit(w.time(30), kind, f"f{flow}", output_tokens=w.rng.choice([100, 700, 2000]))
    return {"fair_slice_s": w.rng.choice([0, 0, 5, 30])}


def kinds_with_weights(w: Writer) -> dict[str, Any]:
    weights = {f"f{n}": w.rng.choice([0.5, 1.0, 3.0]) for n in range(4)}
    for _ in range(w.rng.randrange(4, 14)):
        flow = w.rng.choice(list(weights))
        kind = w.rng.choice(["gana", "nataraj", "api"])
        w.submit(w.time(60), kind, flow, weight=weights[flow], output_tokens=w.rng.choice([50, 400, 900]))
    return {"fair_slice_s": w.rng.choice([0, 7, 30]), "kind_weights": w.rng.choice([{}, {"gana": 2.0}])}


def many_models(w: Writer) -> dict[str, Any]:
    models = w.rng.choice(["XY", "XYZ", "WXYZ"])
    for n in range(w.rng.randrange(4, 20)):
        kind = w.rng.choice(["gana", "nataraj", "api", "extract"])
        more = {"deadline": w.time(300)} if w.rng.random() < 0.2 else {}
        w.submit(
            w.time(200),
            kind,
            f"f{n % 4}",
            w.rng.choice(models),
            output_tokens=w.rng.choice([9, 400, 1500]),
            **more,
        )
    for _ in range(w.rng.randrange(0, 4)):
        w.submit(w.time(300), "chat", "conv", w.rng.choice(models))
    return {}


def model_contention(w: Writer) -> dict[str, Any]:
    """Fair pool only, so that the bound of section 6 can be asked."""
    models = w.rng.choice(["XY", "XYZ", "WXYZ"])
    for n in range(w.rng.randrange(6, 30)):
        w.submit(
            w.time(100),
            "gana",
            f"f{n % 3}",
            w.rng.choice(models),
            output_tokens=w.rng.choice([200, 900, 2500]),
        )
    return {}


def backfill(w: Writer) -> dict[str, Any]:
    for n in range(w.rng.randrange(60, 250)):
        w.submit(
            float(n if w.rng.random() < 0.8 else 0),
            "extract",
            f"note{n}",
            output_tokens=w.rng.choice([20, 40]),
        )
    for n in range(w.rng.randrange(1, 8)):
        more: dict[str, Any] = {"deadline": w.time(400)} if w.rng.random() < 0.5 else {}
        w.submit(
            w.time(300),
            w.rng.choice(["gana", "nataraj"]),
            f"f{n}",
            output_tokens=w.rng.choice([900, 4000]),
            **more,
        )
    for _ in range(w.rng.randrange(0, 5)):
        w.submit(w.time(300), "chat", "conv")
    return {"share_min_busy_s": w.rng.choice([60.0, 60.0, 10.0])}


def surfaces(w: Writer) -> dict[str, Any]:
    models = w.rng.choice(["X", "XY"])
    for n in range(w.rng.randrange(5, 25)):
        kind = w.rng.choice(["gana", "nataraj", "api", "extract", "extract"])
        more = {"foreground_hint": True} if w.rng.random() < 0.35 else {}
        w.submit(w.time(150), kind, f"f{n % 3}", w.rng.choice(models), **more)
    for _ in range(w.rng.randrange(1, 10)):
        looked_at = w.rng.choice(["gana", "nataraj", "extract", "chat", "api", None])
        subject = w.rng.choice([None, "f0", "f1", "nobody"])
        w.add(w.time(150), foreground=None if looked_at is None else {"kind": looked_at, "subject": subject})
    for _ in range(w.rng.randrange(0, 3)):
        w.submit(w.time(150), "chat", "conv", w.rng.choice(models))
    return {}


def deadlines(w: Writer) -> dict[str, Any]:
    for n in range(w.rng.randrange(5, 20)):
        kind = w.rng.choice(["gana", "nataraj", "api", "extract"])
        more = {"deadline": w.time(120) - w.rng.choice([0, 0, 50])} if w.rng.random() < 0.7 else {}
        w.submit(
            w.time(100),
            kind,
            f"f{n % 4}",
            w.rng.choice("XXXY"),
            output_tokens=w.rng.choice([40, 300]),
            **more,
        )
    return {}


def cancels(w: Writer) -> dict[str, Any]:
    many_models(w)
    surfaces(w)
    for job in w.rng.sample(w.ids, len(w.ids) // 2):
        w.add(w.time(200), cancel=job)
    at = next(e["at"] for e in w.events if "submit" in e and e["submit"]["id"] == w.ids[0])
    w.add(at, cancel=w.ids[0])
    return {}


def switches(w: Writer) -> dict[str, Any]:
    many_models(w)
    for _ in range(w.rng.randrange(1, 8)):
        w.add(w.time(200), switch_model={"model": w.rng.choice("XYZ"), "force": w.rng.random() < 0.5})
    for job in w.rng.sample(w.ids, len(w.ids) // 6):
        w.add(w.time(200), cancel=job)
    return {}


def joined_and_waiting(w: Writer) -> dict[str, Any]:
    for n in range(w.rng.randrange(6, 25)):
        kind = w.rng.choice(["gana", "extract", "chat", "nataraj", "api"])
        more: dict[str, Any] = {}
        if w.rng.random() < 0.4:
            more["coalesce_key"] = w.rng.choice(["k1", "k2"])
        if w.ids and w.rng.random() < 0.4:
            more["waits_for"] = w.rng.choice(w.ids)
        if w.rng.random() < 0.15:
            more["deadline"] = w.time(100)
        if w.rng.random() < 0.15:
            more["foreground_hint"] = True
        w.submit(w.time(60), kind, f"f{n % 3}", w.rng.choice("XXXY"), **more)
    for job in w.rng.sample(w.ids, len(w.ids) // 5):
        w.add(w.time(80), cancel=job)
    return {}


def tight_limits(w: Writer) -> dict[str, Any]:
    for n in range(30):
        w.submit(w.time(20), w.rng.choice(["gana", "extract", "chat"]), f"f{n % 3}", w.rng.choice("XXY"))
    return {"max_queued": 8, "max_queued_per_flow": 3}


def prompts_read_ahead(w: Writer) -> dict[str, Any]:
    """Users who type, send, and go away again, over other work on one model or two."""
    surfaces(w)
    models = w.rng.choice(["X", "XY"])
    for n in range(w.rng.randrange(3, 12)):
        hint = {"foreground_hint": True} if w.rng.random() < 0.8 else {}
        typed = w.time(150)
        flow, model = f"conv{n % 3}", w.rng.choice(models)
        w.submit(typed, "chat", flow, model, ahead=True, **hint)
        if w.rng.random() < 0.5:
            w.add(typed + w.rng.choice([0, 0.5, 4]), cancel=w.ids[-1])
        if w.rng.random() < 0.7:
            w.submit(typed + w.rng.choice([0.5, 4]), "chat", flow, model)
    return {}


def everything(w: Writer) -> dict[str, Any]:
    parts = [surfaces, switches, deadlines, joined_and_waiting, chats_over_backlog]
    for part in w.rng.sample(parts, 2):
        part(w)
    return {"fair_slice_s": w.rng.choice([0, 10, 30])}


FAMILIES: dict[str, Callable[[Writer], dict[str, Any]]] = {
    family.__name__: family
    for family in (
        chats_over_backlog,
        backlogged_flows,
        kinds_with_weights,
        many_models,
        model_contention,
        backfill,
        surfaces,
        deadlines,
        cancels,
        switches,
        joined_and_waiting,
        tight_limits,
        prompts_read_ahead,
        everything,
    )
}


def scenario(family: str, seed: int) -> Scenario:
    """One scenario of the family."""
    rng = Random(f"{family} {seed}")
    writer = Writer(rng)
    config = FAMILIES[family](writer)
    config.setdefault("prefill_chunk_tokens", rng.choice([1, 64, 128, 128]))
    config["halving_period_s"] = rng.choice([1e8, 1e8, 300.0])
    models = {}
    for name in "WXYZ":
        load = rng.choice([1, 3, 10, 10, 25]) if rng.random() < 0.5 else 10
        models[name] = {
            "load_s": load,
            "prefill_tps": rng.choice([200, 500, 1000]),
            "decode_tps": rng.choice([10, 20, 50]),
        }
    data: dict[str, Any] = {
        "name": f"{family}-{seed}",
        "config": config,
        "models": models,
        "events": sorted(writer.events, key=lambda event: event["at"])
        if rng.random() < 0.8
        else writer.events,
    }
    if rng.random() < 0.8:
        data["loaded"] = "X"
    if rng.random() < 0.15:
        data["until"] = round(rng.uniform(20, 300), 2)
    return Scenario.model_validate(data)
