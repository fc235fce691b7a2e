"""How errors travel between two processes of UNIUN: by name, with what they carry."""

from typing import Any

from domain import errors
from domain.errors import EngineError, UniunError


def error_to_wire(error: UniunError) -> dict[str, Any]:
    """Plain values."""
    fields = {
        name: value for name, value in vars(error).items() if isinstance(value, str | int | float | None)
    }
    return {"type": type(error).__name__, "message": str(error), "fields": fields}


def error_from_wire(told: object) -> UniunError:
    """The same error; one of a kind that is unknown here is an `EngineError` with the same words."""
    said = told if isinstance(told, dict) else {}
    kind = getattr(errors, str(said.get("type")), None)
    if not isinstance(kind, type) or not issubclass(kind, UniunError):
        kind = EngineError
    error = kind.__new__(kind)
    error.args = (str(said.get("message", "The other process of UNIUN failed without a word.")),)
    fields = said.get("fields")
    error.__dict__.update(fields if isinstance(fields, dict) else {})
    return error
