"""Access control of the web API over TCP (F42). On the control socket only the file's mode decides.

Checked in this order, before any byte of a body is read: the request uses one of the assistant's own names (Host), so
that no web page reaches it under another; it comes from no page, or from one of its own (Origin); and it has the token,
or the cookie of a logged-in browser. The right token is always accepted, no matter who else tried from the same
address; after ten wrong ones within a minute, further ones are answered with 429. Other pages can neither read an
answer (there is no CORS), nor is it cached or shown in a frame.

Browsers send cookies automatically, so a request with only a cookie has to come from an own page (Sec-Fetch-Site), and
one that may change something has to name it (Origin). When a login is revoked, its open streams end at once.

Without authentication, only the files of the page, which contain no data, and the login itself are available.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.core.text import lazy_regex
from assistant.web.deps import AccessRules
from assistant.web.errors import error_content

# Host and port of the client, as in ASGI.
ClientAddress = tuple[str, int]

_MAX_WRONG = 10
_WINDOW_SECONDS = 60.0
# As in a Host header: IPv6 addresses in brackets, no user name.
_AUTHORITY = lazy_regex(
    r"(?:\[(?P<address>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[\w.-]{1,253}))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_MAX_PORT = 65535
# At most so many callers are remembered: the one that tried longest ago is dropped.
_MAX_CALLERS = 1024


class TokenAttempts:
    """Counts wrong tokens by caller; only the newest `_MAX_CALLERS` are remembered."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def seconds_to_wait(self, caller: str) -> int:
        """Return the seconds until this caller may try again; 0 for now."""
        recent = self._recent_attempts(caller)
        if len(recent) < _MAX_WRONG:
            return 0
        return max(1, math.ceil(recent[0] + _WINDOW_SECONDS - self._clock()))

    def record_wrong_token(self, caller: str) -> None:
        """Count one, now."""
        self._wrong[caller] = [*self._recent_attempts(caller), self._clock()][-_MAX_WRONG:]
        self._wrong.move_to_end(caller)
        while len(self._wrong) > _MAX_CALLERS:
            self._wrong.popitem(last=False)

    def _recent_attempts(self, caller: str) -> list[float]:
        since = self._clock() - _WINDOW_SECONDS
        recent = [at for at in self._wrong.get(caller, ()) if at > since]
        if not recent:
            self._wrong.pop(caller, None)
        return recent


_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_MAX_SHOWN = 100
# Marks a request that came through the guard, possibly without a token.
_GUARDED = "assistant.guarded"
# For monitoring: they only answer yes or no, without a token. The page's files are the same for everybody.
_OPEN_PATHS = frozenset({"/", "/worker.js", "/healthz", "/readyz"})
_PAGE_FILES = "/page/"
_LOGIN_PATH = "/v1/login"
_LOGIN_SCHEME = "login"
_READING = frozenset({"GET", "HEAD"})


def _refuse(scope: Scope, status: int, error: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error_content(scope["path"], error), status, headers)


class _TokenRevoked(Exception):
    """The token changed while an event stream was open: it ends, since other requests would be refused."""


class AccessGuard:
    """An ASGI application around another."""

    def __init__(
        self,
        app: ASGIApp,
        rules: AccessRules,
        clock: Callable[[], float],
        admit_authenticated: Callable[[ClientAddress], bool] = lambda address: True,
    ) -> None:
        """`clock` returns monotonic seconds; `admit_authenticated` is called with the address of each connection that
        has the token, and returns whether there is room for it."""
        self._app = app
        self._rules = rules
        self._admit_authenticated = admit_authenticated
        self._hosts = {name.lower() for name in rules.hosts}
        self._attempts = TokenAttempts(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_GUARDED] = True
        is_closed = not _is_open(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message.get("headers", ())))
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            elif message.get("more_body") and is_closed and not self._is_known(scope):
                raise _TokenRevoked
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        try:
            if self._rules.browsers is not None and (secret := self._browser_secret(scope)):
                await self._serve_until(self._rules.browsers.ended(secret), scope, receive, guarded)
            else:
                await self._app(scope, receive, guarded)
        except _TokenRevoked:
            await send({"type": "http.response.body"})

    async def _serve_until(self, ended: asyncio.Event, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an event stream until its browser is logged out; other requests to their end."""
        if scope["path"] != "/v1/events":
            await self._app(scope, receive, send)
            return
        serving = asyncio.ensure_future(self._app(scope, receive, send))
        ending = asyncio.ensure_future(ended.wait())
        # The shutdown cancels this, and the application then sends its last data itself.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
        is_revoked = ending.done()
        for task in (serving, ending):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        if is_revoked:
            raise _TokenRevoked

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        host = _single_header(scope, "host")
        name = _host_name(host)
        if name is None or name not in _LOOPBACK_NAMES | self._hosts | {_address_of(scope, "server")}:
            shown = (host or "nothing")[:_MAX_SHOWN]
            return _refuse(scope, 403, f"This assistant has no name {shown!r}. Its names are set in web.hosts.")
        origins = Headers(scope=scope).getlist("origin")
        if origins and not (len(origins) == 1 and self._is_own_origin(origins[0], host)):
            return _refuse(scope, 403, "Web pages of other sites may not use this assistant. Nothing was done.")
        if _is_open(scope):
            return None
        if not self._has_token(scope) and self._browser_secret(scope) and not _is_from_own_page(scope):
            return _refuse(scope, 403, "A browser that is logged in may be used by this assistant's page alone.")
        return self._check_token(scope)

    def _is_own_origin(self, origin: str, host: str) -> bool:
        """Return whether an origin is the address of the request, or one of the configured names."""
        scheme, _, rest = origin.partition("://")
        if scheme not in ("http", "https"):
            return False
        return rest.lower() == host.lower() or _host_name(rest) in self._hosts

    def _check_token(self, scope: Scope) -> JSONResponse | None:
        """Refuse a caller without the token. The right one never waits: an address may be shared, and a token of this
        length cannot be guessed."""
        if self._is_known(scope):
            if self._has_room(scope):
                return None
            problem = "There are too many connections. Nothing was done; try again when one has ended."
            return _refuse(scope, 503, problem, {"Connection": "close"})
        caller, (scheme, shown) = self._caller(scope), _credentials(scope)
        if scheme == _LOGIN_SCHEME and scope["path"] == _LOGIN_PATH and not self._attempts.seconds_to_wait(caller):
            # Invalid link codes count as well; a valid one is used up.
            self._attempts.record_wrong_token(caller)
            return None
        if shown and (wait := self._attempts.seconds_to_wait(caller)):
            return _refuse(
                scope,
                429,
                f"Too many wrong tokens came from your address. Try again in {wait} s.",
                {"Retry-After": str(wait)},
            )
        if shown:
            self._attempts.record_wrong_token(caller)
        problem = "is not the right one" if shown else "is missing"
        return _refuse(
            scope,
            401,
            f"The bearer token {problem}; `assistant web token` shows the right one. Nothing was done.",
            {"WWW-Authenticate": 'Bearer realm="assistant"'},
        )

    def _is_known(self, scope: Scope) -> bool:
        return self._has_token(scope) or bool(self._browser_secret(scope))

    def _browser_secret(self, scope: Scope) -> str:
        """Return the browser's secret, if it is a valid login and there are no other credentials."""
        browsers = self._rules.browsers
        if browsers is None or Headers(scope=scope).getlist("authorization"):
            return ""
        secret = cookie_secret(scope)
        return secret if secret and browsers.is_valid(secret) else ""

    def _has_token(self, scope: Scope) -> bool:
        token, (scheme, shown) = self._rules.token(), _credentials(scope)
        return scheme == "bearer" and bool(token) and hmac.compare_digest(_digest(shown, "latin-1"), _digest(token))

    def _has_room(self, scope: Scope) -> bool:
        client = scope.get("client")
        return client is None or self._admit_authenticated((client[0], client[1]))

    def _caller(self, scope: Scope) -> str:
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        if self._rules.behind_proxy and forwarded:
            return forwarded[-1].rpartition(",")[2].strip()[:_MAX_SHOWN]
        return _address_of(scope, "client")


def is_guarded(scope: Scope) -> bool:
    """Return whether the request came over TCP, where some paths need no token; on the control socket it did not."""
    return _GUARDED in scope


def _is_open(scope: Scope) -> bool:
    return scope["path"] in _OPEN_PATHS or scope["path"].startswith(_PAGE_FILES)


def _is_from_own_page(scope: Scope) -> bool:
    """Return whether the browser says that the request comes from an own page; `none` is a typed address. A request
    that may change something must also have an Origin, which was checked before."""
    headers = Headers(scope=scope)
    if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
        return False
    return scope["method"] in _READING or len(headers.getlist("origin")) == 1


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie. Browsers separate cookies only by host, so several assistants on a machine are
    distinguished by port."""
    return f"nocturne-{_port(_single_header(scope, 'host'))}"


def cookie_secret(scope: Scope) -> str:
    """Return the secret, "" if there is none."""
    name = cookie_name(scope)
    for header in Headers(scope=scope).getlist("cookie"):
        for pair in header.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
    return ""


def _port(authority: str) -> str:
    match = _AUTHORITY.fullmatch(authority)
    return (match["port"] if match else None) or "0"


def _credentials(scope: Scope) -> tuple[str, str]:
    """Return the scheme of the Authorization header, and its value."""
    scheme, _, shown = _single_header(scope, "authorization").partition(" ")
    return scheme.lower(), shown.strip()


def _single_header(scope: Scope, name: str) -> str:
    """Return the value, "" if the header is missing or repeated."""
    values = Headers(scope=scope).getlist(name)
    return values[0] if len(values) == 1 else ""


def _digest(token: str, encoding: str = "utf-8") -> bytes:
    """Hash a token to a constant length, so that comparing does not reveal the length of the right one."""
    return hashlib.sha256(token.encode(encoding)).digest()


def _host_name(authority: str) -> str | None:
    """Return the name in NAME[:PORT]; None for anything else."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None or int(match["port"] or 0) > _MAX_PORT:
        return None
    return (match["address"] or match["name"]).lower()


def _address_of(scope: Scope, end: str) -> str:
    address = scope.get(end)
    return str(address[0]) if address else ""
