"""What a user may tune without knowing how the program is built."""

from pathlib import Path

from pydantic import Field

from domain.entities.entity import Entity


class Preferences(Entity):
    """None: as the program thinks best."""

    context_tokens: int | None = Field(default=None, ge=1_024, le=131_072)
    """Tokens that a conversation may hold."""
    kv_budget_bytes: int | None = Field(default=None, ge=64 << 20, le=64 << 30)
    """Memory that keeps stopped jobs and conversations warm."""
    threads: int | None = Field(default=None, ge=1, le=512)
    """Of the processor, for the model."""
    read_notes: bool | None = None
    """Whether notes are read into the graph by themselves."""
    extract_share: float | None = Field(default=None, ge=0.05, le=1)
    """Of the model's time, for reading notes, while others want it too."""
    linger_s: float | None = Field(default=None, ge=0, le=3_600)
    """For so long after an answer no background job takes the model of an open chat away."""
    fair_slice_s: float | None = Field(default=None, ge=1, le=600)
    """Background jobs take turns after so long."""
    background_interval_s: float | None = Field(default=None, ge=5, le=3_600)
    """How often the background process looks for due Ganas."""


class PreferencesView(Entity):
    """Everything that a settings page shows."""

    chosen: Preferences
    """As they are written down."""
    in_force: Preferences
    """What this program runs with now; nothing in it is none."""
    defaults: Preferences
    """Likewise without none."""
    fixed: dict[str, str]
    """Fields that the environment sets, whatever is chosen, and the variable that does."""
    cores: int
    """Of this machine's processor: more threads than that only hinder each other."""
    data_dir: Path
    log_dir: Path
