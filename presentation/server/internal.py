"""What other processes of the same user ask for, one line of JSON after another; only the guard lets them in.

A line without content is a sign of life. Whoever goes away ends what was asked for: the job, the surface, the wait.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, suppress
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from domain.entities.entity import Entity
from domain.entities.llm import GenerationRequest, LlmTaskKind
from domain.errors import UniunError
from domain.wire import error_to_wire
from presentation.controllers.peers import PeersController
from presentation.server.guard import INTERNAL

SIGN_OF_LIFE_S = 2.0


class Surface(BaseModel):
    """What the user of the other process looks at."""

    kind: LlmTaskKind
    subject: str | None = None


class Switch(BaseModel):
    """Which model should be resident."""

    model: str
    force: bool = False


def build_internal_router(peers: PeersController) -> APIRouter:
    """Not part of the API for other programs."""
    router = APIRouter(prefix=INTERNAL.rstrip("/"), include_in_schema=False)

    @router.post("/jobs")
    async def submit(request: GenerationRequest) -> StreamingResponse:
        return _lines(_job(peers, request))

    @router.post("/surface")
    async def look_at(surface: Surface) -> StreamingResponse:
        return _lines(_surface(peers, surface))

    @router.post("/switch")
    async def switch(wish: Switch) -> StreamingResponse:
        return _lines(_done(peers.switch_model(wish.model, force=wish.force)))

    @router.get("/watch")
    async def watch() -> StreamingResponse:
        return _lines(_named("change", peers.watch()))

    @router.get("/snapshot")
    async def snapshot() -> JSONResponse:
        return JSONResponse(peers.snapshot().model_dump(mode="json"))

    @router.get("/history")
    async def history() -> JSONResponse:
        return JSONResponse(peers.recent().model_dump(mode="json"))

    @router.get("/export")
    async def export() -> JSONResponse:
        return JSONResponse(peers.export())

    @router.get("/metrics")
    async def metrics() -> JSONResponse:
        return JSONResponse(peers.metrics().model_dump(mode="json"))

    return router


async def _job(peers: PeersController, request: GenerationRequest) -> AsyncIterator[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        job = peers.submit(request)
        stack.callback(job.cancel)
        yield {"job": job.id}
        async for line in _named("event", job.events()):
            yield line


async def _surface(peers: PeersController, surface: Surface) -> AsyncIterator[dict[str, Any]]:
    with peers.looking_at(surface.kind, surface.subject):
        yield {"looking": True}
        await asyncio.Event().wait()


async def _done(work: Awaitable[None]) -> AsyncIterator[dict[str, Any]]:
    await work
    yield {"done": True}


async def _named(name: str, entities: AsyncIterator[Entity]) -> AsyncIterator[dict[str, Any]]:
    try:
        async for entity in entities:
            yield {name: entity.model_dump(mode="json")}
    finally:
        await _close(entities)


def _lines(items: AsyncIterator[dict[str, Any]]) -> StreamingResponse:
    return StreamingResponse(_spoken(items), media_type="application/x-ndjson")


async def _spoken(items: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """As lines, with signs of life between them; an error is the last one."""
    coming: asyncio.Future[dict[str, Any] | None] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(_next(items))
            done, _ = await asyncio.wait((coming,), timeout=SIGN_OF_LIFE_S)
            if not done:
                yield "{}\n"
                continue
            item, coming = coming.result(), None
            if item is None:
                return
            yield json.dumps(item) + "\n"
    except UniunError as error:
        yield json.dumps({"error": error_to_wire(error)}) + "\n"
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, UniunError):
                await coming
        await _close(items)


async def _next(items: AsyncIterator[dict[str, Any]]) -> dict[str, Any] | None:
    return await anext(items, None)


async def _close(items: AsyncIterator[Any]) -> None:
    if hasattr(items, "aclose"):
        await items.aclose()
