"""What every route of the API does alike: strict JSON in, errors in OpenAI's shape out."""

from collections.abc import Callable, Coroutine
from json import JSONDecodeError
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import Scope

from domain.errors import UniunError
from presentation.api.errors import ApiErrorBody, error_response

ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"model": ApiErrorBody, "description": "An error in OpenAI's shape."}
}


class StrictRequest(Request):
    """JSON by the book: no NaN, no bytes that are no UTF-8, no depth without end."""

    async def json(self) -> Any:
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise JSONDecodeError(str(error), "", 0) from None  # the only kind that FastAPI tells on


class ApiRoute(APIRoute):
    """A route whose errors are OpenAI's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_in_shape(request: Request) -> Response:
            try:
                return await handle(StrictRequest(request.scope, request.receive))
            except (UniunError, RequestValidationError, HTTPException) as error:
                return error_response(error)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it

        return handle_in_shape


class ProgramRoute(ApiRoute):
    """An address that also has a page: a browser, which asks for HTML, gets the page."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        accept = next((value for name, value in scope.get("headers", ()) if name == b"accept"), b"")
        if b"text/html" in accept:
            return Match.NONE, {}
        return super().matches(scope)
