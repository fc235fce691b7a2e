"""Making a model known that servers elsewhere run."""

from urllib.parse import urlsplit

from pydantic import ValidationError

from domain.entities.entity import Entity
from domain.entities.llm import Sampling
from domain.entities.models import InstalledModel, RemoteModel, ServerState
from domain.errors import InvalidRequest
from domain.reasons import plain_reason
from domain.repositories.model_servers import ModelServers
from domain.repositories.model_store import ModelStore


class AddedRemoteModel(Entity):
    """What was registered, and what its servers said when they were asked."""

    model: InstalledModel
    servers: tuple[ServerState, ...]


class AddRemoteModelUseCase:
    """Registers servers under a model's name. They need not be up."""

    def __init__(self, models: ModelStore, servers: ModelServers) -> None:
        self._models = models
        self._servers = servers

    async def __call__(
        self,
        name: str,
        urls: tuple[str, ...],
        model: str,
        *,
        key_variable: str | None = None,
        jobs: int | None = None,
        context_tokens: int | None = None,
        priority: bool = False,
        sampling: Sampling | None = None,
    ) -> AddedRemoteModel:
        """What is not given is asked of the servers; where they do not say, one job at a time. Raises `InvalidRequest`."""
        if not model.strip():
            raise InvalidRequest("Say with --model by which name the server knows the model.")
        addresses = tuple(dict.fromkeys(map(server_address, urls)))
        try:
            remote = RemoteModel(
                urls=addresses,
                model=model,
                key_variable=key_variable,
                priority=priority,
                sampling=sampling,
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = {"urls": "--url", "key_variable": "--key-env"}.get(str(first["loc"][0]), "--model")
            reason = plain_reason(first["msg"])
            if first["type"] == "string_pattern_mismatch":
                reason = "the name of an environment variable has letters, digits and _ only"
            raise InvalidRequest(f"{field} is wrong: {reason}.") from None
        states = await self._servers.states(remote)
        # All get the same number, so the weakest counts.
        told = [state.jobs for state in states if state.jobs is not None]
        remote = remote.model_copy(update={"jobs": jobs or min(told, default=1)})
        contexts = [state.context_tokens for state in states if state.context_tokens is not None]
        known = self._models.register_remote(name, remote, context_tokens or min(contexts, default=None))
        return AddedRemoteModel(model=known, servers=states)


def server_address(url: str) -> str:
    """The address up to and with `/v1`. Raises `InvalidRequest`: an address with a password, too, is refused."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(f"{url[:200]!r} is no address: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"{url[:200]!r} is no address of a server. Give one as http://HOST:PORT/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidRequest(
            "The address must hold no password and nothing after its path. Put the key into an environment variable and "
            "name that with --key-env."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{path}"
