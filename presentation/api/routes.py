"""The API for other programs."""

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException

from presentation.api.embeddings import embedding_routes
from presentation.api.generation import generation_routes
from presentation.api.inspection import inspection_routes
from presentation.api.model_list import model_routes
from presentation.api.route import ApiRoute
from presentation.faces import Controllers

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def build_router(faces: Controllers) -> APIRouter:
    """All routes of it."""
    router = APIRouter()
    router.include_router(generation_routes(faces.api))
    router.include_router(embedding_routes(faces.api))
    router.include_router(model_routes(faces.api))
    router.include_router(inspection_routes(faces))
    router.include_router(_no_route())
    return router


def _no_route() -> APIRouter:
    """What a client does not find is told in its own shape, not as a page."""
    router = APIRouter(route_class=ApiRoute)

    @router.api_route("/v1/{path:path}", methods=_METHODS, include_in_schema=False)
    async def nothing(request: Request, path: str) -> None:
        raise HTTPException(
            404, f"There is no {request.method} /v1/{path[:200]}. /openapi.json lists what there is."
        )

    return router
