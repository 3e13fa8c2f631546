"""Who may use the web API over TCP (F42). On the control socket the file's mode decides, and none of this is asked.

What always holds, in this order, before a byte of a body is read: a request names this assistant by a name of its own
(Host), so that no page in a browser reaches it under another; it comes from no page, or from one of its own (Origin);
and it shows the token. Whoever shows ten wrong ones within a minute waits, whatever they show next. No answer may be
read by another page (there is no CORS), kept by anybody in between, or shown in a frame.
"""

from __future__ import annotations

import hmac
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.web.connection_limits import ClientAddress
from assistant.web.deps import AccessRules

_MOST_WRONG = 10
_WITHIN_SECONDS = 60.0
# More callers than this are not kept apart: the one heard of longest ago is let off.
_MOST_CALLERS = 1024


class TokenAttempts:
    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never go back."""
        self._clock = clock
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def seconds_to_wait(self, who: str) -> int:
        """Seconds until this caller may try again; 0 for now."""
        recent = self._recent(who)
        if len(recent) < _MOST_WRONG:
            return 0
        return max(1, math.ceil(recent[0] + _WITHIN_SECONDS - self._clock()))

    def record_wrong_token(self, who: str) -> None:
        self._wrong[who] = [*self._recent(who), self._clock()][-_MOST_WRONG:]
        self._wrong.move_to_end(who)
        while len(self._wrong) > _MOST_CALLERS:
            self._wrong.popitem(last=False)

    def _recent(self, who: str) -> list[float]:
        since = self._clock() - _WITHIN_SECONDS
        recent = [at for at in self._wrong.get(who, ()) if at > since]
        if not recent:
            self._wrong.pop(who, None)
        return recent


LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    error: str
    headers: Mapping[str, str] | None = None


_NO_ROOM = _Refusal(
    503, "As many are connected as may be. Nothing was done; try again when one has gone.", {"Connection": "close"}
)


class _Revoked(Exception):
    """Another token was made while an event stream was open: it ends, as every other request would be refused."""


class AccessGuard:
    """An ASGI application around another."""

    def __init__(
        self,
        app: ASGIApp,
        rules: AccessRules,
        clock: Callable[[], float],
        open_paths: frozenset[str] = frozenset(),
        admit_authenticated: Callable[[ClientAddress], bool] = lambda address: True,
    ) -> None:
        """`clock` gives seconds that never go back; `open_paths` need no token; `lets_in` is told who showed it,
        and says whether there is room for them."""
        self._app = app
        self._rules = rules
        self._open_paths = open_paths
        self._lets_in = admit_authenticated
        self._hosts = {name.lower() for name in rules.hosts}
        self._attempts = TokenAttempts(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _with_ours(message.get("headers", ()))}
            elif message.get("more_body") and not self._shows_it(scope):
                raise _Revoked
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            answer = JSONResponse({"error": refusal.error}, refusal.status, refusal.headers)
            await answer(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except _Revoked:
            await send({"type": "http.response.body"})

    def _refusal(self, scope: Scope) -> _Refusal | None:
        headers = scope["headers"]
        host = _only(headers, b"host")
        name = _name_in(f"//{host}") if host else None
        if name is None or name not in LOOPBACK_NAMES | self._hosts | {_address(scope, "server")}:
            shown = (host or "nothing")[:_LONGEST_SHOWN]
            return _Refusal(403, f"This assistant is not called {shown!r}. Names of its own stand in web.hosts.")
        origins = _all(headers, b"origin")
        if origins and not (len(origins) == 1 and self._is_ours(origins[0], host)):
            return _Refusal(403, "A page from elsewhere may not ask this assistant. Nothing was done.")
        if scope["path"] in self._open_paths:
            return None
        return self._unknown(scope)

    def _is_ours(self, origin: str, host: str) -> bool:
        """A page is from here where its address is the one that was asked, or one of the configured names."""
        scheme, _, rest = origin.partition("://")
        if scheme not in ("http", "https"):
            return False
        return rest.lower() == host.lower() or _name_in(origin) in self._hosts

    def _unknown(self, scope: Scope) -> _Refusal | None:
        """Whether the caller shows the token. Who may not try just now is not told whether it was right."""
        who = self._caller(scope)
        if wait := self._attempts.seconds_to_wait(who):
            return _Refusal(
                429, f"Too many wrong tokens came from here. Try again in {wait} s.", {"Retry-After": str(wait)}
            )
        if self._shows_it(scope):
            return None if self._has_room(scope) else _NO_ROOM
        shown = _shown(scope)[1]
        if shown:
            self._attempts.record_wrong_token(who)
        told = "is not the right one" if shown else "is missing"
        return _Refusal(
            401,
            f"The bearer token {told}; `assistant web token` shows it. Nothing was done.",
            {"WWW-Authenticate": 'Bearer realm="assistant"'},
        )

    def _shows_it(self, scope: Scope) -> bool:
        token, (scheme, shown) = self._rules.token(), _shown(scope)
        return scheme == "bearer" and bool(token) and hmac.compare_digest(shown.encode("latin-1"), token.encode())

    def _has_room(self, scope: Scope) -> bool:
        client = scope.get("client")
        return client is None or self._lets_in((client[0], client[1]))

    def _caller(self, scope: Scope) -> str:
        forwarded = _all(scope["headers"], b"x-forwarded-for")
        if self._rules.behind_proxy and forwarded:
            return forwarded[-1].rpartition(",")[2].strip()[:_LONGEST_SHOWN]
        return _address(scope, "client")


def _shown(scope: Scope) -> tuple[str, str]:
    """By which scheme, and what."""
    scheme, _, shown = _only(scope["headers"], b"authorization").partition(" ")
    return scheme.lower(), shown.strip()


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What the application says itself stays."""
    there = list(headers)
    names = {name.lower() for name, _ in there}
    return there + [(k.encode(), v.encode()) for k, v in _HEADERS.items() if k.encode() not in names]


def _all(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _only(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """ "" where there is none, or several to choose from."""
    found = _all(headers, name)
    return found[0] if len(found) == 1 else ""


def _name_in(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _address(scope: Scope, end: str) -> str:
    found = scope.get(end)
    return str(found[0]) if found else ""
