"""Whether the server of this data folder does its work, for `doctor`."""

import asyncio

import httpx
import psutil

from data.presence import Presence, ServerAddress
from domain.entities.health import Finding
from domain.errors import InvalidRequest

AREA = "server"
ANSWER_S = 3.0
"""A server that works answers within milliseconds, however much it has to do."""
ENGINE_S = 15.0
"""An engine that hangs is found out by its watchdog before that."""


async def examine_server(
    presence: Presence, *, answer_s: float = ANSWER_S, engine_s: float = ENGINE_S
) -> Finding:
    """Asks the one that runs, if one does."""
    try:
        address = presence.server_address()
    except InvalidRequest as error:
        return Finding(area=AREA, state="fail", text=str(error))
    if address is None and presence.server_is_there():
        text = "a UNIUN server is opening or closing"
        mend = "Look again in a moment. If it stays so, find its process with `ps` and end it with `kill`."
        return Finding(area=AREA, state="warn", text=text, mend=mend)
    if address is None:
        return Finding(
            area=AREA, state="ok", text="none runs; a command that needs the model loads it itself"
        )
    named = f"the UNIUN server at {address.url} (process {address.pid})"
    async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
        headers = {"Authorization": f"Bearer {address.secret}"}
        try:
            await _get(client, f"{address.url}/internal/snapshot", answer_s, headers)
        except (TimeoutError, httpx.HTTPError, OSError):
            return _silent(named, address)
        try:
            healthy = await _get(client, f"{address.url}/health", engine_s, headers) == httpx.codes.OK
        except (TimeoutError, httpx.HTTPError, OSError):
            healthy = False
    if healthy:
        return Finding(area=AREA, state="ok", text=f"{named} answers, and so does its engine")
    return Finding(
        area=AREA,
        state="warn",
        text=f"{named} answers, but its engine gives no sign of life",
        mend=f"It starts another one by itself. If it stays so, end the server with `kill {address.pid}` and start it again.",
    )


async def _get(
    client: httpx.AsyncClient, url: str, limit_s: float, headers: dict[str, str] | None = None
) -> int:
    """The status; the body is not read, which may be long."""
    async with asyncio.timeout(limit_s), client.stream("GET", url, headers=headers) as response:
        return response.status_code


def _silent(named: str, address: ServerAddress) -> Finding:
    pid = address.pid
    try:
        stopped = psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        stopped = False
    if stopped:
        return Finding(
            area=AREA,
            state="fail",
            text=f"{named} was stopped and answers nobody",
            mend=f"Let it go on with `kill -CONT {pid}`, or end it with `kill -9 {pid}`.",
        )
    return Finding(
        area=AREA,
        state="fail",
        text=f"{named} does not answer",
        mend=f"End it with `kill {pid}`, or `kill -9 {pid}` if it stays, and start it again with `uniun serve`.",
    )
