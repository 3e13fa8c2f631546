"""Calls to the Bot API: the bot, its connection, and what a call that failed means.

What always holds: the token stands in the address of every request and in no error, no log and no representation.
Nothing is tried twice here: whoever calls decides that. A message may have arrived (`ambiguous`) unless Telegram
refused it, or no connection to it was had. A server's fault (5xx) counts as such: a gateway that gave up waiting
says it too, when the message is out already; only 503 is an answer from before any work. What refuses without
Telegram's own words is something on the way to it, and refuses no message for good (but one that is too large for it).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import httpx
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
)
from telegram.request import HTTPXRequest, RequestData

from assistant.core.errors import BridgeError

_OFFICIAL = "https://api.telegram.org"
_WANTED = ("message", "edited_message", "callback_query")
_HIDDEN = "<token>"
# What logs addresses of requests: httpx at INFO, the library's own bot at DEBUG.
_TALKATIVE = ("httpx", "telegram.Bot")
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
# Connections that nobody used for this many seconds are closed: one that a router forgot would take a message and
# never tell.
_IDLE_SECONDS = 5.0
_CONNECTIONS = 32


class TelegramServerError(TelegramError):
    """The Bot API answered 5xx."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class TelegramRateLimited(TelegramError):
    """The Bot API answered 429. `seconds` is for how long it takes nothing."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"patience, {seconds:g} s")
        self.seconds = seconds


class TelegramApi:
    """A bot, and the token kept out of sight. `timeout` is in seconds, of each step of a request."""

    def __init__(self, token: str, base_url: str, timeout: float) -> None:
        self._token = token
        self._timeout = timeout
        self._secrecy = _Secrecy(token)
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(self._secrecy)
        request = _Request(
            connection_pool_size=_CONNECTIONS,
            connect_timeout=timeout,
            read_timeout=timeout,
            write_timeout=timeout,
            pool_timeout=timeout,
            media_write_timeout=4 * timeout,
            httpx_kwargs={"limits": httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_IDLE_SECONDS)},
        )
        address = base_url.rstrip("/") or _OFFICIAL
        self.bot = Bot(token, f"{address}/bot", f"{address}/file/bot", request=request, get_updates_request=request)
        self._request = request

    async def get_updates(self, offset: int, wait: float) -> list[dict[str, Any]]:
        """As they came, so that one that cannot be read keeps no other back. Raises `BridgeError`."""
        asked: dict[str, Any] = {"timeout": round(wait), "allowed_updates": _WANTED}
        if offset:
            asked["offset"] = offset
        with self.as_bridge_errors():
            # Names of methods are the same in any case; this one the library would rather have called its own way.
            updates = await self.bot.do_api_request("getupdates", api_kwargs=asked, read_timeout=wait + self._timeout)
        return list(updates)

    async def close(self) -> None:
        await self._request.shutdown()
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(self._secrecy)

    @contextmanager
    def as_bridge_errors(self) -> Iterator[None]:
        """Raises `BridgeError` for a call that failed."""
        try:
            yield
        except TelegramError as error:
            raise self._trouble(error) from None

    def _trouble(self, error: TelegramError) -> BridgeError:
        said = error.message.replace(self._token, _HIDDEN)
        match error:
            case TelegramRateLimited():
                return BridgeError("Telegram asks for patience: too many messages.", retry_after=error.seconds)
            case InvalidToken() | EndPointNotFound():
                return BridgeError(
                    "Telegram does not accept the bot's token. `assistant bridge add telegram` takes a new one."
                )
            case Conflict() if "webhook" in said:
                return BridgeError(
                    "The bot's messages go to a webhook of something else. Give the assistant a bot of its own: "
                    "`assistant bridge add telegram`."
                )
            case Conflict():
                return BridgeError(
                    "Something else receives this bot's messages too, another assistant perhaps. Stop it, or give this "
                    "one a bot of its own: `assistant bridge add telegram`."
                )
            case Forbidden() | BadRequest() if error.__cause__ is not None:
                return BridgeError("Something on the way to Telegram lets nothing through: a proxy, perhaps.")
            case Forbidden():
                return BridgeError(
                    f"Telegram does not let the bot write there ({said}). Whoever it is for has to unblock the bot, or "
                    "add it to the group again; the message is kept.",
                    refused=True,
                )
            case BadRequest() | ChatMigrated():
                return BridgeError(f"Telegram refused it ({said}). It is kept.", refused=True)
            case TelegramServerError():
                ambiguous = error.status != HTTPStatus.SERVICE_UNAVAILABLE
                return BridgeError(f"Telegram has a fault ({said}).", ambiguous=ambiguous)
            case NetworkError() if isinstance(error.__cause__, _NOT_SENT):
                return BridgeError("Telegram cannot be reached.")
            case _:
                kind = type(error.__cause__ or error).__name__
                return BridgeError(f"The connection to Telegram broke ({kind}).", ambiguous=True)


class _Request(HTTPXRequest):
    """Tells apart what the library does not, and logs no content."""

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *timeouts: Any, **named: Any
    ) -> tuple[int, bytes]:
        status, payload = await super().do_request(url, method, request_data, *timeouts, **named)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise TelegramServerError(status)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise TelegramRateLimited(
                float(self.parse_json_payload(payload).get("parameters", {}).get("retry_after", 1))
            )
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise BadRequest("too large")
        return status, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(payload.decode("utf-8", "replace"))
        except ValueError:
            raise TelegramError("an answer that is no JSON") from None
        return answer


class _Secrecy(logging.Filter):
    """Takes the token out of what is logged."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if self._token in said:
            record.msg, record.args = said.replace(self._token, _HIDDEN), None
        return True
