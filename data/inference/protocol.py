"""What goes over the pipes between the engine process and its supervisor: one JSON object a line."""

from data.children.lines import MAX_LINE_BYTES, Line, encode
from domain.errors import (
    EngineError,
    EngineMissing,
    InvalidRequest,
    InvalidSchema,
    ModelDamaged,
    ModelLoadFailed,
    PromptTooLong,
    UniunError,
)
from domain.repositories.inference_runner import RunnerJob

_MAX_REQUEST_BYTES = MAX_LINE_BYTES // 2

# To the engine: `do` is load, unload, run, stop, forget or ping. From it: `id` of the call and one of `at` (a boundary:
# prefilled tokens, prompt tokens, tokens done, the new token or none, new text), `done` (the result, with an `at` if it ends with
# text that no token brought) or `error`. A run begins
# with `batches`, those in which the kept part of the prompt was evaluated; they come with each boundary until the first token.

_ERRORS: dict[str, type[UniunError]] = {
    kind.__name__: kind
    for kind in (EngineError, EngineMissing, InvalidRequest, InvalidSchema, ModelDamaged, ModelLoadFailed)
}


def job_to_line(job: RunnerJob) -> Line:
    """Raises `InvalidRequest` for a job that is too large, and `InvalidSchema`."""
    try:
        line = job.model_dump(mode="json")
        size = len(encode(line))
    except (ValueError, RecursionError) as error:
        # The rest of a job is text and numbers that were checked when it was made.
        raise InvalidSchema(f"The JSON schema is too deep or no JSON: {error}.") from error
    if size > _MAX_REQUEST_BYTES:
        raise InvalidRequest(
            f"The request is larger than {_MAX_REQUEST_BYTES >> 20} MiB. Shorten the prompt."
        )
    return line


def error_to_line(error: UniunError) -> Line:
    if isinstance(error, PromptTooLong):
        numbers = [error.prompt_tokens, error.context_tokens]
        return {"kind": "PromptTooLong", "numbers": numbers, "at_least": error.at_least}
    return {"kind": type(error).__name__, "message": str(error)}


def error_from_line(line: Line) -> UniunError:
    if line["kind"] == "PromptTooLong":
        prompt_tokens, context_tokens = line["numbers"]
        return PromptTooLong(prompt_tokens, context_tokens, at_least=line["at_least"])
    return _ERRORS.get(line["kind"], EngineError)(line["message"])
