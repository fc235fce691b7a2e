"""The one configuration that every entity shares."""

from pydantic import BaseModel, ConfigDict


class Entity(BaseModel):
    """Immutable, compared by value; unknown fields and non-finite numbers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
