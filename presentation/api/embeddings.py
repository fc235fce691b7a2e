"""`/v1/embeddings`."""

import base64
import struct
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Response
from pydantic import BaseModel
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from domain.entities.api import ApiClient
from domain.usecases.api import EMBEDDER, Vectors
from presentation.api.clients import Clients
from presentation.api.errors import error_response
from presentation.api.live import while_connected
from presentation.api.route import ERRORS, ApiRoute
from presentation.api.wire import EmbeddingsIn
from presentation.controllers.api import ApiController


class EmbeddingOut(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str
    """Numbers, or their 32-bit little-endian bytes in base64, as was asked for."""


class EmbeddingUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    object: Literal["list"] = "list"
    data: list[EmbeddingOut]
    model: str
    usage: EmbeddingUsage


class LiveVectors(Response):
    """Stops embedding when the client has gone."""

    def __init__(self, api: ApiController, body: EmbeddingsIn, client: ApiClient) -> None:
        self._api, self._body, self._client = api, body, client
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(self._send(scope, receive, send), receive)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self._body
        try:
            found = await self._api.embed(
                body.texts(), self._client, model=body.model, dimensions=body.dimensions
            )
            response = JSONResponse(_embeddings(found, body.encoding_format == "base64").model_dump())
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer in OpenAI's shape
            response = error_response(error)
        await response(scope, receive, send)


def embedding_routes(api: ApiController) -> APIRouter:
    router = APIRouter(route_class=ApiRoute, tags=["embeddings"], responses=ERRORS)
    Client = Annotated[ApiClient, Depends(Clients(api))]  # noqa: N806 - a type

    @router.post("/v1/embeddings", response_model=None, responses={200: {"model": EmbeddingList}})
    async def embed(body: Annotated[EmbeddingsIn, Body()], client: Client) -> Response:
        """Vectors of length 1 for texts; long texts are cut to the embedder's window."""
        return LiveVectors(api, body, client)

    return router


def _embeddings(found: Vectors, as_base64: bool) -> EmbeddingList:
    return EmbeddingList(
        data=[
            EmbeddingOut(index=at, embedding=_base64(vector) if as_base64 else list(vector))
            for at, vector in enumerate(found.vectors)
        ],
        model=EMBEDDER,
        usage=EmbeddingUsage(prompt_tokens=found.tokens, total_tokens=found.tokens),
    )


def _base64(vector: tuple[float, ...]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
