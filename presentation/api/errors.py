"""Errors in OpenAI's shape. This is the one place that gives an error of the domain its HTTP status."""

import logging
import re
from collections.abc import Sequence
from math import ceil
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from domain import errors as e
from domain.reasons import plain_reason

_NAME = re.compile(r"\w+")
_TYPES = {"str", "list", "int", "float", "bool", "dict", "datetime"}
RETRY_AFTER_S = 5
"""A slot in a full queue is free when the next job ends, which takes a few seconds."""
_STATUS: tuple[tuple[type[e.UniunError], int, str], ...] = (
    (e.KeyRefused, 401, "invalid_api_key"),
    (e.RateLimited, 429, "rate_limit_exceeded"),
    (e.StartTooLate, 408, "start_timeout"),
    (e.QueueFull, 503, "queue_full"),
    (e.PromptTooLong, 400, "context_length_exceeded"),
    (e.InvalidSchema, 400, "invalid_json_schema"),
    (e.NotFound, 404, "not_found"),
    (e.InvalidRequest, 400, "invalid_request"),
    (e.UnknownModel, 404, "model_not_found"),
    (e.ModelUnavailable, 503, "model_unavailable"),
    (e.StoreBusy, 503, "model_store_busy"),
    (e.ModelError, 500, "model_failed"),
    (e.JobCancelled, 503, "cancelled"),
    (e.JobStopped, 503, "stopped"),
    (e.EngineLost, 503, "engine_lost"),
    (e.EngineError, 500, "engine_failed"),
    (e.TooManyWatchers, 503, "too_many_watchers"),
    (e.DatabaseError, 503, "database_unavailable"),
)
_log = logging.getLogger("uniun.api")


class ApiErrorDetail(BaseModel):
    """As OpenAI's clients read it."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ApiErrorBody(BaseModel):
    """The body of every answer that is no success."""

    error: ApiErrorDetail


def error_detail(error: Exception) -> tuple[int, ApiErrorDetail, dict[str, str]]:
    """Status, body and headers for any exception. Of one that is not ours, only its class is logged: its text may
    hold what the client sent."""
    headers: dict[str, str] = {}
    if isinstance(error, e.UniunError):
        status, code = _entry(error)
        if isinstance(error, e.RateLimited):
            headers["Retry-After"] = str(max(1, ceil(error.retry_after_s)))
        elif status == 503:
            headers["Retry-After"] = str(RETRY_AFTER_S)
        elif status == 408:
            headers["x-should-retry"] = "false"  # the client gave the time, and it has passed
        elif status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return status, ApiErrorDetail(message=str(error), type=_type(status), code=code), headers
    if isinstance(error, RequestValidationError):
        message, param = _first_fault(error)
        detail = ApiErrorDetail(message=message, type=_type(400), param=param, code="invalid_request")
        return 400, detail, headers
    if isinstance(error, HTTPException):
        detail = ApiErrorDetail(message=str(error.detail), type=_type(error.status_code))
        return error.status_code, detail, dict(error.headers or {})
    _log.error("A request failed: %s", type(error).__name__)
    return 500, ApiErrorDetail(message="Something unexpected happened.", type=_type(500)), headers


def error_response(error: Exception) -> JSONResponse:
    """The whole answer."""
    status, detail, headers = error_detail(error)
    return JSONResponse(ApiErrorBody(error=detail).model_dump(), status, headers)


def _entry(error: e.UniunError) -> tuple[int, str]:
    return next(
        ((status, code) for kind, status, code in _STATUS if isinstance(error, kind)), (500, "failed")
    )


def _type(status: int) -> str:
    special = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    return special.get(status, "server_error" if status >= 500 else "invalid_request_error")


def _telling(faults: Sequence[Any]) -> dict[str, Any]:
    """The first; of a field of several types what is wrong in the one that was sent."""
    field = _place(faults[0])[:1]
    same = [fault for fault in faults if _place(fault)[:1] == field]
    return dict(next((fault for fault in same if not fault["type"].endswith("_type")), faults[0]))


def _place(fault: Any) -> list[str]:
    """Names and numbers; the library also puts in which type it tried, as `list[constrained-str]`."""
    parts = [str(part) for part in fault["loc"][1:]]
    return [part for part in parts if _NAME.fullmatch(part) and part not in _TYPES]


def _first_fault(error: RequestValidationError) -> tuple[str, str | None]:
    """What is wrong, and the field's path; never the value, which may be long or private."""
    first = _telling(error.errors())
    place = ".".join(_place(first)) or None
    if first["type"] == "json_invalid":
        return f"The body is no JSON: {first.get('ctx', {}).get('error', 'it cannot be read')}.", None
    if place is None and first["type"] in ("model_attributes_type", "dict_type", "missing"):
        return "Send a JSON object as the body, with Content-Type: application/json.", None
    reason = plain_reason(str(first["msg"]))
    return (f"{place}: {reason}." if place else f"{reason}."), place
