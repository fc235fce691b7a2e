"""`/v1/models`."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from domain.entities.api import ApiClient
from domain.errors import UnknownModel
from domain.usecases.api import EMBEDDER
from presentation.api.clients import Clients
from presentation.api.route import ERRORS, ApiRoute
from presentation.controllers.api import ApiController


class ModelOut(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    """Not known; OpenAI's clients want a number."""
    owned_by: str
    context_length: int | None = None
    is_default: bool = False


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelOut]


def model_routes(api: ApiController) -> APIRouter:
    router = APIRouter(route_class=ApiRoute, tags=["models"], responses=ERRORS)
    Client = Annotated[ApiClient, Depends(Clients(api))]  # noqa: N806 - a type

    @router.get("/v1/models")
    async def list_models(client: Client) -> ModelList:
        """What is installed, and the embedder."""
        return ModelList(data=_models(api))

    @router.get("/v1/models/{model:path}")
    async def show_model(model: str, client: Client) -> ModelOut:
        """One of them; `default` is the one that the user chose."""
        models = _models(api)
        for shown in models:
            if shown.id == model or (model == "default" and shown.is_default):
                return shown
        raise UnknownModel(f"There is no model {model[:200]}. GET /v1/models lists those that there are.")

    return router


def _models(api: ApiController) -> list[ModelOut]:
    models = [
        ModelOut(
            id=model.name,
            owned_by=model.source,
            context_length=model.context_tokens,
            is_default=model.is_default,
        )
        for model in api.models()
    ]
    return [*models, ModelOut(id=EMBEDDER, owned_by="sentence-transformers")]
