"""`/health`, `/metrics`, `/scheduler` and its events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from domain.entities.api import ApiClient
from domain.entities.scheduler import SchedulerChange, SchedulerSnapshot
from domain.errors import UniunError
from presentation.api.clients import Clients
from presentation.api.errors import error_response
from presentation.api.live import QUIET_S, ClientStuck, Stream, while_connected
from presentation.api.metrics import CONTENT_TYPE, exposition
from presentation.api.route import ERRORS, ApiRoute, ProgramRoute
from presentation.faces import Controllers


class Health(BaseModel):
    status: Literal["ok", "engine does not answer"]
    version: str


class SchedulerEvents(Response):
    """The trace, record by record, after the state at the beginning."""

    def __init__(self, faces: Controllers) -> None:
        self._faces = faces
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(self._send(scope, receive, send), receive)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        changes = self._faces.scheduler.watch()
        coming = asyncio.ensure_future(anext(changes))
        stream = Stream(send)
        try:
            # What is refused, is refused at once; then the status can still say so.
            await asyncio.sleep(0)
            if coming.done():
                coming.result()
            await stream.begin({})
            await stream.event("snapshot", self._faces.scheduler.snapshot().model_dump(mode="json"))
            while True:
                await asyncio.wait({coming}, timeout=QUIET_S)
                if coming.done():
                    change = coming.result()
                    coming = asyncio.ensure_future(anext(changes))
                    await stream.event(change.type, change.model_dump(mode="json"))
                else:
                    await stream.comment("still here")
        except UniunError as error:
            await error_response(error)(scope, receive, send)
        except (ClientStuck, StopAsyncIteration):
            return
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            await _close(changes)


def inspection_routes(faces: Controllers) -> APIRouter:
    router = APIRouter(route_class=ApiRoute, tags=["inspection"])
    Client = Annotated[ApiClient, Depends(Clients(faces.api))]  # noqa: N806 - a type

    @router.get("/health", response_model=Health, responses={503: {"model": Health}})
    async def health() -> Response:
        """200 only while the engine process gives a sign of life; needs no key."""
        ok = await faces.api.engine_answers()
        seen = Health(status="ok" if ok else "engine does not answer", version=faces.version())
        return JSONResponse(seen.model_dump(), 200 if ok else 503)

    @router.get(
        "/metrics",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **ERRORS},
        response_class=Response,
    )
    async def metrics(client: Client) -> Response:
        """For Prometheus."""
        return Response(exposition(faces.scheduler.metrics), media_type=CONTENT_TYPE)

    async def scheduler(client: Client) -> SchedulerSnapshot:
        """What runs, what waits in which order, and why."""
        return faces.scheduler.snapshot()

    router.add_api_route("/scheduler", scheduler, responses=ERRORS, route_class_override=ProgramRoute)

    @router.get(
        "/scheduler/events",
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **ERRORS},
    )
    async def events(client: Client) -> Response:
        """The state, then every record of the trace (docs/scheduler.md), as server-sent events."""
        return SchedulerEvents(faces)

    return router


async def _close(changes: AsyncIterator[SchedulerChange]) -> None:
    aclose = getattr(changes, "aclose", None)
    if aclose is not None:
        with contextlib.suppress(Exception):
            await aclose()
