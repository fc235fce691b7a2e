"""What a server's refusals mean."""

import json
import re

import httpx

from domain.errors import EngineError, InvalidRequest, PromptTooLong, UniunError

_RETRIED = (408, 425, 429, 500, 502, 503, 504, 529)
_LIMITS = re.compile(r"maximum context length is (\d+) tokens.*?(\d+) (?:input )?tokens", re.DOTALL)
"""vLLM's and OpenAI's sentence."""


class ServerFailed(EngineError):
    """This server cannot answer now; another one, or the same one later, may. `status` if it answered at all."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


def named(url: str) -> str:
    """An address for people: no password, no query."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "The server"
    port = f":{parsed.port}" if parsed.port else ""
    return f"The server at {parsed.scheme}://{parsed.host}{port}{parsed.path.rstrip('/')}"


def refusal(name: str, status: int, body: str) -> UniunError:
    """The error for an answer that is none."""
    told = _message(body)
    if status in _RETRIED or status >= 500:
        return ServerFailed(f"{name} answered {status}: {told}", status)
    if status in (401, 403):
        return EngineError(
            f"{name} does not accept the key (status {status}). Set the environment variable that was given with "
            "--key-env to a valid key."
        )
    if (numbers := _context(body, told)) is not None:
        return PromptTooLong(*numbers)
    if status == 404:
        return EngineError(f"{name} does not know this model or this kind of request (status 404): {told}")
    return InvalidRequest(f"{name} refused the request (status {status}): {told}")


def _message(body: str) -> str:
    """The server's own words, in whichever of the usual places they are."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = body
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    text = found if isinstance(found, str) else json.dumps(found)
    return " ".join(text.split())[:300] or "no reason given"


def _context(body: str, told: str) -> tuple[int, int] | None:
    """Prompt tokens and context tokens, when the prompt is what was too long."""
    try:
        error = json.loads(body)["error"]
        return int(error["n_prompt_tokens"]), int(error["n_ctx"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    if (found := _LIMITS.search(told)) is not None:
        return int(found[2]), int(found[1])
    return None
