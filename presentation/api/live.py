"""An answer that lives as long as its connection: the job ends when the client is gone, streaming or not."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from domain.entities.llm import Finished, GenerationEvent, Preempted, Prefilling, TextDelta, Waiting
from domain.errors import EngineError, StartTooLate
from domain.repositories.scheduler_coordinator import JobHandle
from presentation.api.answers import Answer
from presentation.api.errors import ApiErrorBody, error_detail, error_response

QUIET_S = 10.0
"""A stream on which nothing happens gets a comment after so long, so that nobody between here and there closes it."""
STUCK_S = 60.0
"""A client that takes nothing for so long is taken for gone."""
POSITION = "X-Queue-Position"
STREAM_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


class LiveAnswer(Response):
    """Runs the job while the client listens."""

    def __init__(self, job: JobHandle, answer: Answer, *, stream: bool, start_within_s: float | None) -> None:
        self._job = job
        self._answer = answer
        self._stream = stream
        self._start_within_s = start_within_s
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_connected(self._send(scope, receive, send), receive)
        finally:
            self._job.cancel()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        events = paced(self._job, self._start_within_s)
        try:
            async with contextlib.aclosing(events):
                first = await anext(events)
                position = {POSITION: str(first.position if isinstance(first, Waiting) else 0)}
                if self._stream:
                    await self._write(first, events, position, Stream(send))
                else:
                    response = await self._read(first, events, position)
                    await response(scope, receive, send)
        except ClientStuck:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer in OpenAI's shape
            await error_response(error)(scope, receive, send)

    async def _read(
        self,
        event: GenerationEvent | None,
        events: AsyncIterator[GenerationEvent | None],
        headers: dict[str, str],
    ) -> Response:
        while not isinstance(event, Finished):
            event = await anext(events)
        return JSONResponse(self._answer.whole(event.result).model_dump(), headers=headers)

    async def _write(
        self,
        event: GenerationEvent | None,
        events: AsyncIterator[GenerationEvent | None],
        headers: dict[str, str],
        stream: "Stream",
    ) -> None:
        """From here on an error is an event, since the status is sent."""
        await stream.begin(headers)
        told = "still here"
        try:
            while True:
                match event:
                    case TextDelta(text=text):
                        await stream.data(*self._answer.feed(text))
                    case Finished(result=result):
                        await stream.data(*self._answer.end(result))
                        await stream.raw("data: [DONE]\n\n")
                        break
                    case None:
                        await stream.comment(told)
                    case _:
                        told = _comment(event)
                        await stream.comment(told)
                event = await anext(events)
        except ClientStuck:
            raise
        except Exception as error:  # noqa: BLE001
            await stream.data(ApiErrorBody(error=error_detail(error)[1]).model_dump())
        await stream.end()


class ClientStuck(Exception):
    """The client is connected and takes nothing."""


class Stream:
    """Server-sent events on one connection. Every method raises `ClientStuck`."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def begin(self, headers: dict[str, str]) -> None:
        pairs = [(k.lower().encode(), v.encode()) for k, v in (STREAM_HEADERS | headers).items()]
        await self._out({"type": "http.response.start", "status": 200, "headers": pairs})

    async def data(self, *chunks: object) -> None:
        if chunks:
            text = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks)
            await self.raw(text)

    async def event(self, name: str, value: object) -> None:
        await self.raw(f"event: {name}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n")

    async def comment(self, text: str) -> None:
        await self.raw(f": {text}\n\n")

    async def raw(self, text: str) -> None:
        body = text.encode("utf-8", "replace")
        await self._out({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        await self._out({"type": "http.response.body", "body": b"", "more_body": False})

    async def _out(self, message: Message) -> None:
        try:
            async with asyncio.timeout(STUCK_S):
                await self._send(message)
        except TimeoutError:
            raise ClientStuck from None


async def while_connected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Runs `work` to its end, or until the client has gone."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def paced(
    job: JobHandle, start_within_s: float | None = None
) -> AsyncGenerator[GenerationEvent | None, None]:
    """What happens to the job, and None whenever nothing has happened for a while.

    Raises `StartTooLate` when it has waited for `start_within_s` and still waits, and what ends the job.
    """
    events = job.events()
    late = asyncio.ensure_future(asyncio.sleep(start_within_s)) if start_within_s is not None else None
    coming: asyncio.Future[GenerationEvent] | None = None
    waiting: Waiting | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(events))
            awaited: set[asyncio.Future[Any]] = {coming} if late is None else {coming, late}
            await asyncio.wait(awaited, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                event = coming.result()
                coming = None
                if isinstance(event, Waiting):
                    waiting = event
                elif late is not None:
                    late.cancel()
                    late = None
                yield event
                if isinstance(event, Finished):
                    return
            elif late is not None and late.done():
                raise StartTooLate(_too_late(start_within_s or 0.0, waiting))
            else:
                yield None
    except StopAsyncIteration:
        raise EngineError(f"Job {job.id} ended without an answer. Ask again.") from None
    finally:
        if late is not None:
            late.cancel()
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        job.cancel()


def _too_late(seconds: float, waiting: Waiting | None) -> str:
    later = " or later" if waiting is not None and waiting.at_least else ""
    place = f"it was number {waiting.position}{later} in the queue" if waiting else "it had not begun to run"
    return (
        f"The answer was not begun within the {seconds:g} s of `timeout`: {place}. "
        "Send it again with more time, or with more urgency."
    )


def _comment(event: GenerationEvent) -> str:
    """For whoever reads the stream with their own eyes; clients skip comments. Other clients are not named in it."""
    match event:
        case Waiting(position=position, at_least=at_least, estimated_start_s=seconds):
            place = f"queued, position {position}" + (" or later" if at_least else "")
            return place + (f", starts in about {seconds:g} s" if seconds else "")
        case Prefilling(done_tokens=done, total_tokens=total):
            return f"prefill, {done} of {total} tokens"
        case Preempted():
            return "paused for something more urgent; it goes on where it stopped"
        case _:
            return "still here"
