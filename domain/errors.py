"""Every error a user can meet. `str(error)` says what happened, to what, and what to do."""


class UniunError(Exception):
    """Root of the tree: faces (command line, web, API) catch this and show `str(error)`."""


class InvalidRequest(UniunError):
    """The caller asked for something that cannot be done as asked; asking again unchanged will not help."""


class PromptTooLong(InvalidRequest):
    """The prompt does not fit the model's context; `at_least` when `prompt_tokens` is a lower bound."""

    def __init__(self, prompt_tokens: int, context_tokens: int, *, at_least: bool = False) -> None:
        self.prompt_tokens = prompt_tokens
        self.context_tokens = context_tokens
        self.at_least = at_least
        super().__init__(
            f"The prompt has {'at least ' if at_least else ''}{prompt_tokens} tokens, but the model's context holds {context_tokens} "
            "with room for at least one token of answer. Shorten the prompt or use a model with a longer context."
        )


class InvalidField(InvalidRequest):
    """One field of a form was refused; `field` is its name, so that a face shows the reason beside it."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class ServerRuns(UniunError):
    """A server is open on this data folder already; `url` is where."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(f"UNIUN is open already, at {url}")


class NoServer(UniunError):
    """A command that shows what a running UNIUN does found none on this data folder."""

    def __init__(self) -> None:
        super().__init__("No UNIUN is running here, so there is nothing to show. Start it with: uniun serve")


class InvalidSchema(InvalidRequest):
    """The JSON schema for structured output cannot be compiled."""


class ScenarioError(InvalidRequest):
    """A scenario for the simulator is malformed; the message names the file, the line and the reason."""


_QUEUES = {
    "chat": ("questions of this conversation", "Wait for an answer, or stop one, and send it again."),
    "extract": ("readings of this note", "It is read anyway; try again when it has been."),
    "nataraj": ("cards of this deck", "Try again when some are written."),
    "gana": ("runs of this Gana", "Try again when one has ended."),
    "api": ("requests of {}", "Send more when some are answered."),
}


class QueueFull(UniunError):
    """A queue limit is reached. Attributes: `limit`, `depth` (both in jobs), `flow` (`kind/flow`, none for all work)."""

    def __init__(self, limit: int, depth: int, flow: str | None = None) -> None:
        self.limit = limit
        self.depth = depth
        self.flow = flow
        kind, _, name = (flow or "").partition("/")
        what, advice = _QUEUES.get(kind, ("jobs", "Try again when some have run."))
        super().__init__(
            f"The queue is full: {depth} {what.format(name)} wait and the limit is {limit}. {advice}"
        )


class TooManyWatchers(UniunError):
    """So many readers follow the scheduler already that no more are taken; `limit` says how many."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(
            f"{limit} readers follow the scheduler already, and no more are taken. Close one, or try again later."
        )


class RateLimited(UniunError):
    """A key has been used more often than it allows; `retry_after_s` says when it may be used again."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class KeyRefused(UniunError):
    """An API key is missing where one is needed, or is unknown or revoked."""


class StartTooLate(UniunError):
    """A job was still waiting when the time that its caller gave it to start had passed."""


class JobCancelled(UniunError):
    """The caller, or the caller's going away, cancelled the job."""


class JobStopped(UniunError):
    """The job was ended by something other than its caller, for example a forced model switch."""


class ModelError(UniunError):
    """Something is wrong with a model, not with the request."""


class UnknownModel(ModelError):
    """No model of this name is installed or in the catalogue."""


class ModelDamaged(ModelError):
    """Files of the model are missing, truncated or altered. Names the file."""


class ModelLoadFailed(ModelError):
    """The engine could not load the model."""


class ModelUnavailable(ModelError):
    """The model's source cannot be reached, or the download did not complete."""


class StoreBusy(ModelError):
    """Another process is using the model store exclusively."""


class EngineError(UniunError):
    """The inference engine failed."""


class EngineMissing(EngineError):
    """The engine's package is not installed; the message says which one to install."""


class EngineLost(EngineError):
    """The engine process died or gave no sign of life. The job can be run again and resumes from its tokens."""


class NoteChanged(InvalidRequest):
    """The note is another now than the one that was edited; nothing was saved."""


class ServerLost(EngineError):
    """The server whose model was used has ended, or gives no sign of life."""


class NotFound(InvalidRequest):
    """Something was asked for by a name or id that nothing has."""


class NoteNotFound(NotFound):
    """No note has this id."""


class ManasNotFound(NotFound):
    """No Manas has this id or name."""


class ConversationNotFound(NotFound):
    """No conversation has this id."""


class MessageNotFound(NotFound):
    """No message has this id."""


class CardNotFound(NotFound):
    """No card has this id."""


class GanaNotFound(NotFound):
    """No Gana has this id or name."""


class KeyNotFound(NotFound):
    """No API key has this id or name."""


class TickLost(UniunError):
    """Another process took over a Gana's tick, because this one gave no sign of life for too long."""


class WebhookFailed(UniunError):
    """A Gana's webhook could not be reached, or did not accept what was sent."""


class DatabaseError(UniunError):
    """The database cannot be used: missing, damaged, full, locked for too long, or of a newer program."""
