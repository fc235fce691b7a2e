"""`uniun keys …`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from presentation.cli.openers import Library
from presentation.cli.terminal import ask_first, say, write

OpenLibrary = Callable[[], AbstractAsyncContextManager[Library]]


async def create(
    open_library: OpenLibrary, name: str, kind: str, weight: float, per_minute: int | None
) -> None:
    """The key alone goes to stdout, so that a script can take it."""
    async with open_library() as library:
        key, text = await library.api_keys.create(name, kind=kind, weight=weight, per_minute=per_minute)
    say(f"The key of {key.name}; keep it, it is not shown again:")
    write(f"{text}\n")


async def list_keys(open_library: OpenLibrary) -> None:
    """One a line."""
    async with open_library() as library:
        keys = await library.api_keys.list()
    if not keys:
        write("There is no key. Make one with: uniun keys create NAME\n")
    for key in keys:
        rate = f"{key.per_minute} a minute" if key.per_minute else "any rate"
        made = key.created_at.strftime("%Y-%m-%d")
        write(f"{key.id[:12]}  {made}  {key.kind:8} weight {key.weight:<5g} {rate:16} {key.name}\n")


async def revoke(open_library: OpenLibrary, reference: str, *, sure: bool) -> None:
    """Says which one it was."""
    async with open_library() as library:
        known = await library.api_keys.find(reference)
        ask_first(f"revoke the key of {known.name}", sure=sure)
        key = await library.api_keys.revoke(known.id)
    write(f"The key of {key.name} is revoked.\n")
