"""The API for other programs."""

from fastapi import APIRouter

from presentation.faces import Controllers


def build_router(faces: Controllers) -> APIRouter:
    """All routes of it."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": faces.version()}

    return router
