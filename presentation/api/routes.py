"""The API for other programs."""

from fastapi import APIRouter

from presentation.api.embeddings import embedding_routes
from presentation.api.generation import generation_routes
from presentation.api.inspection import inspection_routes
from presentation.api.model_list import model_routes
from presentation.faces import Controllers


def build_router(faces: Controllers) -> APIRouter:
    """All routes of it."""
    router = APIRouter()
    router.include_router(generation_routes(faces.api))
    router.include_router(embedding_routes(faces.api))
    router.include_router(model_routes(faces.api))
    router.include_router(inspection_routes(faces))
    return router
