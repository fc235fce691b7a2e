"""`/v1/chat/completions` and `/v1/completions`."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Response

from domain.entities.api import ApiClient
from domain.entities.llm import Tool
from presentation.api.answers import ChatAnswer, ChatCompletion, TextAnswer, TextCompletion
from presentation.api.clients import Clients
from presentation.api.live import LiveAnswer
from presentation.api.route import ERRORS, ApiRoute
from presentation.api.wire import ChatIn, CompletionIn, GenerationIn
from presentation.controllers.api import ApiController

_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


def generation_routes(api: ApiController) -> APIRouter:
    router = APIRouter(route_class=ApiRoute, tags=["generation"], responses=ERRORS)
    Client = Annotated[ApiClient, Depends(Clients(api))]  # noqa: N806 - a type

    @router.post(
        "/v1/chat/completions",
        response_model=None,
        responses={200: {"model": ChatCompletion, "content": _STREAM, "description": "The answer."}},
    )
    async def chat(body: Annotated[ChatIn, Body()], client: Client) -> Response:
        """Answers a conversation, at once or as server-sent events."""
        model = api.model_name(body.model)
        job = api.submit(body.job(api.now()), client)
        tooling = body.tooling()
        tools: tuple[Tool, ...] = tooling.tools if tooling else ()
        answer = ChatAnswer(
            api.new_id("chatcmpl"), int(api.now().timestamp()), model, tools, usage=_usage(body)
        )
        return LiveAnswer(job, answer, stream=bool(body.stream), start_within_s=body.timeout)

    @router.post(
        "/v1/completions",
        response_model=None,
        responses={200: {"model": TextCompletion, "content": _STREAM, "description": "The text."}},
    )
    async def complete(body: Annotated[CompletionIn, Body()], client: Client) -> Response:
        """Continues a raw prompt, without a chat template."""
        model = api.model_name(body.model)
        job = api.submit(body.job(api.now()), client)
        answer = TextAnswer(api.new_id("cmpl"), int(api.now().timestamp()), model, usage=_usage(body))
        return LiveAnswer(job, answer, stream=bool(body.stream), start_within_s=body.timeout)

    return router


def _usage(body: GenerationIn) -> bool:
    return body.stream_options is not None and body.stream_options.include_usage
