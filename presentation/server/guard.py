"""Who may ask: by the name that was asked for, the page that asks, and the token.

A page of any web site can send requests to this machine from the user's own browser. It cannot forge `Host` (a name
that was bound to this machine by DNS is seen here), nor `Origin` and `Sec-Fetch-Site`.
"""

import hmac
import re
import socket
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from presentation.server.options import LOOPBACK, ServerOptions, is_loopback
from presentation.server.refusal import Refusal, header, refuse

INTERNAL = "/internal/"
FOR_PROGRAMS = ("/v1/", "/scheduler", "/metrics", "/health")
"""Where a key of the API is as good as the token."""
COOKIE = "uniun_token"
_YEAR_S = 365 * 86_400
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_READING = ("GET", "HEAD")


class Guard:
    """ASGI middleware. `key_fits` tells whether a key of the API is good; asked only where a token is needed."""

    def __init__(
        self, app: ASGIApp, options: ServerOptions, key_fits: Callable[[str], Awaitable[bool]]
    ) -> None:
        self._app = app
        self._options = options
        self._key_fits = key_fits
        own = socket.gethostname().lower()
        reachable = () if is_loopback(options.host) else (options.host, own, f"{own}.local")
        self._names = {name.lower() for name in (*LOOPBACK, *reachable, *options.names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._misdirected(scope) or self._cross_site(scope)
        if refusal is None and scope["path"].startswith(INTERNAL):
            refusal = self._no_process_of_ours(scope)
        elif refusal is None and self._options.token is not None:
            if self._token_in_query(scope):
                await self._hand_out_cookie(scope, send)
                return
            refusal = await self._token_missing(scope)
        if refusal is not None:
            await refuse(scope, send, refusal)
            return
        await self._app(scope, receive, send)

    # -- the name that was asked for

    def _misdirected(self, scope: Scope) -> Refusal | None:
        names = [name for name, _ in scope["headers"]]
        if names.count(b"host") > 1 or (b"transfer-encoding" in names and b"content-length" in names):
            return Refusal(400, "The request says two things about where it goes or how long it is.")
        host = _HOST.fullmatch(header(scope, b"host").decode("latin-1").lower())
        if host is None:
            return Refusal(400, "The request does not say which host it is for.")
        name = host[1].strip("[]").rstrip(".")
        # A rebound name is a name: an address that was asked for as such is this machine's own.
        if name in self._names or (not is_loopback(self._options.host) and _is_address(name)):
            return None
        return Refusal(
            403,
            "UNIUN does not go by this name. Ask for it by its address, or add the name to UNIUN_SERVER__NAMES.",
        )

    # -- the page that asks

    def _cross_site(self, scope: Scope) -> Refusal | None:
        foreign = Refusal(
            403, "Another web site asked for this in your browser; UNIUN answers its own pages only."
        )
        origin = header(scope, b"origin")
        if origin:
            host = header(scope, b"host").lower()
            return None if origin.lower() in (b"http://" + host, b"https://" + host) else foreign
        if header(scope, b"sec-fetch-site") in (b"", b"same-origin", b"none"):
            return None
        followed_a_link = (
            scope["type"] == "http"
            and scope["method"] in _READING
            and header(scope, b"sec-fetch-mode") == b"navigate"
            and header(scope, b"sec-fetch-dest") in (b"", b"document")
        )
        return None if followed_a_link and not scope["path"].startswith(INTERNAL) else foreign

    def _no_process_of_ours(self, scope: Scope) -> Refusal | None:
        client = (scope.get("client") or ("",))[0]
        here = is_loopback(client) or client == (scope.get("server") or (None,))[0]
        if here and not header(scope, b"origin") and _same(_bearer(scope), self._options.secret):
            return None
        return Refusal(403, "This is for UNIUN's own programs.")

    # -- the token

    async def _token_missing(self, scope: Scope) -> Refusal | None:
        bearer = _bearer(scope)
        if _for_programs(scope) and self._no_process_of_ours(scope) is None:
            return None
        if _same(bearer, self._options.token) or _same(_cookie(scope), self._options.token):
            return None
        if bearer and _for_programs(scope) and await self._key_fits(bearer):
            return None
        return Refusal(
            401,
            "A token is needed. Open the address that `uniun serve` printed, or send it as a Bearer token.",
        )

    def _token_in_query(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] not in _READING:
            return False
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token", "")
        return _same(given, self._options.token)

    async def _hand_out_cookie(self, scope: Scope, send: Send) -> None:
        """And the same address without the token, so that it is in no history and no bookmark."""
        query = [
            pair for pair in parse_qsl(scope["query_string"].decode("latin-1"), True) if pair[0] != "token"
        ]
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        place = "/" + path.lstrip("/") + ("?" + urlencode(query) if query else "")
        cookie = f"{COOKIE}={self._options.token}; HttpOnly; SameSite=Lax; Path=/; Max-Age={_YEAR_S}"
        headers = [
            (b"location", place.encode("latin-1")),
            (b"set-cookie", cookie.encode("latin-1")),
            (b"cache-control", b"no-store"),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _for_programs(scope: Scope) -> bool:
    """`/scheduler` is both: who accepts HTML gets the page, and a key opens none."""
    accepts = (value for name, value in scope["headers"] if name == b"accept")
    page = scope["path"] == "/scheduler" and any(b"text/html" in value for value in accepts)
    return scope["path"].startswith(FOR_PROGRAMS) and not page


def _bearer(scope: Scope) -> str:
    scheme, _, value = header(scope, b"authorization").decode("latin-1").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def _cookie(scope: Scope) -> str:
    try:
        jar = SimpleCookie(header(scope, b"cookie").decode("latin-1"))
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""


def _same(given: str, wanted: str | None) -> bool:
    return bool(wanted) and hmac.compare_digest(given.encode(), (wanted or "").encode())


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
