"""What can be tuned, in words, with what it does."""

from dataclasses import dataclass
from typing import Any

from domain.entities.preferences import Preferences

_MB = 1 << 20
NOW = "It holds from now on."


@dataclass(frozen=True)
class Setting:
    """One preference. `scale` is what one of the shown unit is in the stored one."""

    field: str
    title: str
    effect: str
    unit: str
    scale: float
    whole: bool = True
    when: str = NOW

    @property
    def live(self) -> bool:
        """Whether a choice holds as soon as it is made."""
        return self.when == NOW

    def shown(self, value: float) -> str:
        """The stored value in the shown unit."""
        number = value / self.scale
        return f"{number:,.0f}" if self.whole else f"{number:g}"

    def limits(self, cores: int) -> str:
        """What may be chosen, in the shown unit, on a machine with so many cores."""
        bounds: dict[str, float] = {}
        for bound in Preferences.model_fields[self.field].metadata:
            for side in ("ge", "le"):
                if (value := getattr(bound, side, None)) is not None:
                    bounds[side] = value
        if self.field == "threads":
            bounds["le"] = cores
        return f"from {self.shown(bounds['ge'])} to {self.shown(bounds['le'])} {self.unit}"

    def stored(self, text: str) -> Any:
        """None for an empty field. Raises `ValueError` for what is no number."""
        cleaned = text.strip().replace(",", "").replace(" ", "")
        if not cleaned:
            return None
        number = float(cleaned) * self.scale
        return round(number) if self.whole and self.field in _COUNTS else number


_RELOAD = "The model is loaded anew with it; what it writes just then goes on after that."
_COUNTS = {"context_tokens", "kv_budget_bytes", "threads"}
_PERCENT = 0.01

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "context_tokens",
        "Longest conversation",
        "How much the model keeps in view at once: notes, question and answer together. More takes more memory and "
        "makes the first word come later. A model that holds less keeps its own limit.",
        "tokens",
        1,
        when=_RELOAD,
    ),
    Setting(
        "kv_budget_bytes",
        "Memory for what was begun",
        "Stopped jobs and recent conversations are kept warm in it, so that they go on without reading everything again. "
        "Less frees memory for other programs; more makes going back and forth between chats faster.",
        "MB",
        _MB,
        when=_RELOAD,
    ),
    Setting(
        "threads",
        "Processor cores for the model",
        "More is faster until other programs suffer. On a machine with a graphics processor it hardly matters.",
        "cores",
        1,
        when=_RELOAD,
    ),
    Setting(
        "extract_share",
        "Share of the time for reading notes",
        "While cards and Ganas wait too, reading notes into the graph gets at most this share of the model's time. "
        "Less reads new notes later, more lets the deck fill later.",
        "%",
        _PERCENT,
    ),
    Setting(
        "linger_s",
        "Stay with the chat",
        "After an answer, the chat's model stays loaded for so long before background work may load another one. "
        "It matters only if you use several models.",
        "seconds",
        1,
    ),
    Setting(
        "fair_slice_s",
        "Turns of background work",
        "Cards, Ganas and reading take turns after so many seconds. Short turns share more evenly, long ones swap less.",
        "seconds",
        1,
    ),
    Setting(
        "background_interval_s",
        "How often the background process looks",
        "While the app is closed, Ganas start at most this late.",
        "seconds",
        1,
        when="The background process takes it over when it looks the next time.",
    ),
)


def value_of(preferences: Preferences, field: str) -> float | None:
    """The stored value; none if nothing is chosen."""
    found: float | None = getattr(preferences, field)
    return found
