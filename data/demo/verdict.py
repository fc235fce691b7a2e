"""The figures in one sentence. Whatever it says is computed, and it says so when this scheduler is not the best."""

from collections.abc import Sequence

from domain.counting import counted
from domain.entities.demo import DemoQuantile, DemoRun


def verdict(runs: Sequence[DemoRun]) -> str:
    """Compares the slowest chat of each policy, with the idle machine's, and what the background got done."""
    idle = next((run for run in runs if run.policy == "idle"), None)
    loaded = sorted((run for run in runs if run.policy != "idle"), key=_badness)
    if not loaded:
        return f"On the idle machine the slowest of {_chats(runs[0])} waited {_wait(_slowest(runs[0]))}."
    best, *others = loaded
    said = f"Under {best.policy} the slowest of {_chats(best)} waited {_wait(_slowest(best))} for its first token"
    said += _against_idle(best, idle)
    if others:
        waits = " and ".join(f"{_wait(_slowest(run))} under {run.policy}" for run in others)
        said += f", against {waits}"
    return f"{said}{_background(best, others)}."


def _badness(run: DemoRun) -> tuple[bool, float]:
    slowest = _slowest(run)
    return slowest.lower_bound, slowest.value_s


def _slowest(run: DemoRun) -> DemoQuantile:
    return run.first_token_s.max


def _chats(run: DemoRun) -> str:
    return counted(run.first_token_s.count, "chat")


def _wait(time: DemoQuantile) -> str:
    digits = 2 if time.value_s < 9.95 else 1
    return f"{'more than ' if time.lower_bound else ''}{time.value_s:.{digits}f} s"


def _against_idle(run: DemoRun, idle: DemoRun | None) -> str:
    if idle is None or _slowest(idle).lower_bound or _slowest(idle).value_s <= 0:
        return ""
    if _slowest(run).lower_bound:
        return f" ({_wait(_slowest(idle))} on the idle machine)"
    ratio = _slowest(run).value_s / _slowest(idle).value_s
    return f" ({ratio:.1f} times the idle machine's {_wait(_slowest(idle))})"


def _background(best: DemoRun, others: Sequence[DemoRun]) -> str:
    rate = best.background_tokens_per_s
    if not others:
        return f", while the background produced {counted(round(rate), 'token')} a second"
    fastest = max(others, key=lambda run: run.background_tokens_per_s)
    if fastest.background_tokens_per_s <= 0:
        return ""
    share = rate / fastest.background_tokens_per_s
    chats = f"the chats took {best.chats_s / best.window_s:.0%} of the device"
    return f"; {chats}, and the background kept {share:.0%} of the tokens a second that it made under {fastest.policy}"
