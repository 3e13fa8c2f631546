"""Calls to the Bot API: the bot, its connection, and translation of errors.

The token is in the address of every request, and in no error, log or representation. Nothing is retried here: the
caller decides. A message may have arrived (`ambiguous`) unless Telegram refused it, or there was no connection. A
server error (5xx) is ambiguous, since a gateway may time out after the message was sent; only 503 occurs before any
work. A refusal that is not in Telegram's own format comes from a proxy, and never refuses a message permanently (unless
it is too large for it).
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import httpx
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity
from telegram.constants import InlineKeyboardButtonLimit, MessageLimit
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

from assistant.bridges.telegram.render import render_markdown, replace_surrogates, utf16_length
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from assistant.core.records import Button
from assistant.core.text import beside_loop

_OFFICIAL = "https://api.telegram.org"
_UPDATE_KINDS = ("message", "edited_message", "callback_query")
_TOKEN_PLACEHOLDER = "<token>"
# These log the addresses of requests: httpx at INFO, the library's bot at DEBUG.
_TOKEN_LOGGERS = ("httpx", "telegram.Bot")
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
# Connections idle for so many seconds are closed: a router may have forgotten one, and lose a message silently.
_IDLE_SECONDS = 5.0
_CONNECTIONS = 32


class TelegramServerError(TelegramError):
    """The Bot API answered 5xx."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class TelegramRateLimited(TelegramError):
    """The Bot API answered 429; it accepts requests again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"rate limited, {seconds:g} s")
        self.seconds = seconds


class TelegramApi:
    """A bot, with its token hidden in logs. `timeout` is in seconds, for each step of a request."""

    def __init__(self, token: str, base_url: str, timeout: float) -> None:
        self._token = token
        self._timeout = timeout
        self._token_filter = _TokenFilter(token)
        for name in _TOKEN_LOGGERS:
            logging.getLogger(name).addFilter(self._token_filter)
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
        """Return updates as raw JSON, so that an unreadable one does not block others. Raises `BridgeError`."""
        query: dict[str, Any] = {"timeout": round(wait), "allowed_updates": _UPDATE_KINDS}
        if offset:
            query["offset"] = offset
        with self.as_bridge_errors():
            # Method names are case-insensitive; with the usual name the library logs a warning.
            updates = await self.bot.do_api_request("getupdates", api_kwargs=query, read_timeout=wait + self._timeout)
        return list(updates)

    async def close(self) -> None:
        await self._request.shutdown()
        for name in _TOKEN_LOGGERS:
            logging.getLogger(name).removeFilter(self._token_filter)

    @contextmanager
    def as_bridge_errors(self) -> Iterator[None]:
        """Translate errors of a call to `BridgeError`."""
        try:
            yield
        except TelegramError as error:
            raise self._to_bridge_error(error) from None

    def _to_bridge_error(self, error: TelegramError) -> BridgeError:
        text = error.message.replace(self._token, _TOKEN_PLACEHOLDER)
        match error:
            case TelegramRateLimited():
                return BridgeError("Telegram asks to wait: too many messages.", retry_after=error.seconds)
            case InvalidToken() | EndPointNotFound():
                return BridgeError(
                    "Telegram does not accept the bot's token. `assistant bridge add telegram` takes a new one."
                )
            case Conflict() if "webhook" in text:
                return BridgeError(
                    "The bot's messages go to a webhook of another program. Give the assistant a bot of its own: "
                    "`assistant bridge add telegram`."
                )
            case Conflict():
                return BridgeError(
                    "Another program receives this bot's messages too, perhaps another assistant. Stop it, or give "
                    "this assistant a bot of its own: `assistant bridge add telegram`."
                )
            case Forbidden() | BadRequest() if error.__cause__ is not None:
                return BridgeError("Something between here and Telegram, perhaps a proxy, refuses the request.")
            case Forbidden():
                return BridgeError(
                    f"Telegram does not let the bot write there ({text}). The recipient has to unblock the bot, or add "
                    "it to the group again; the message is kept.",
                    refused=True,
                )
            case BadRequest() | ChatMigrated():
                return BridgeError(f"Telegram refused the message ({text}). It is kept.", refused=True)
            case TelegramServerError():
                ambiguous = error.status != HTTPStatus.SERVICE_UNAVAILABLE
                return BridgeError(f"Telegram failed ({text}).", ambiguous=ambiguous)
            case NetworkError() if isinstance(error.__cause__, _NOT_SENT):
                return BridgeError("Telegram cannot be reached.")
            case _:
                kind = type(error.__cause__ or error).__name__
                return BridgeError(f"The connection to Telegram broke ({kind}).", ambiguous=True)


class _Request(HTTPXRequest):
    """Distinguishes errors that the library does not, and logs no content."""

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *timeouts: Any, **options: Any
    ) -> tuple[int, bytes]:
        status, payload = await super().do_request(url, method, request_data, *timeouts, **options)
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
        except (ValueError, RecursionError):
            raise TelegramError("an answer that is no JSON") from None
        return answer


class _TokenFilter(logging.Filter):
    """Removes the token from log records."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if self._token in message:
            record.msg, record.args = message.replace(self._token, _TOKEN_PLACEHOLDER), None
        return True


MAX_MESSAGE_UNITS = int(MessageLimit.MAX_TEXT_LENGTH)

_MAX_PHOTO_BYTES = 10_000_000
_PHOTO_TYPES = ("image/jpeg", "image/png", "image/webp")
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

# To a chat and, optionally, a topic.
SendToChat = Callable[[int, int | None], Awaitable[object]]


def parse_target(target: str) -> tuple[int, int | None]:
    """Return chat and topic. Raises `BridgeError` for other texts."""
    chat, _, thread = target.partition(":")
    try:
        return int(chat), int(thread) if thread else None
    except ValueError:
        text = f'"{target}" is not a chat of Telegram: chats are numbers. The message is kept.'
        raise BridgeError(text, refused=True) from None


def inline_keyboard(buttons: Iterable[Button]) -> InlineKeyboardMarkup | None:
    """Return buttons whose command is short enough for Telegram; the text has the commands of all others."""
    max_bytes = InlineKeyboardButtonLimit.MAX_CALLBACK_DATA
    visible = [button for button in buttons if button.label.strip() and 0 < len(button.command.encode()) <= max_bytes]
    rows = [[InlineKeyboardButton(button.label, callback_data=button.command)] for button in visible]
    return InlineKeyboardMarkup(rows) if rows else None


async def send_text(
    bot: Bot, markdown: str, chat: int, thread: int | None, buttons: InlineKeyboardMarkup | None = None
) -> None:
    """Raises `TelegramError`."""

    async def send(text: str, entities: tuple[MessageEntity, ...]) -> None:
        await _send_with_fallback(
            lambda chat, thread: bot.send_message(
                chat,
                text,
                entities=entities,
                message_thread_id=thread,
                reply_markup=buttons,
                link_preview_options=_NO_PREVIEW,
            ),
            chat,
            thread,
        )

    text, entities = await beside_loop(len(markdown), render_markdown, markdown)
    if not text or utf16_length(text) > MAX_MESSAGE_UNITS:
        await send(replace_surrogates(markdown), ())
        return
    try:
        await send(text, entities)
    except BadRequest as error:
        if "entit" not in error.message.casefold():
            raise
        await send(replace_surrogates(markdown), ())


async def send_media(
    bot: Bot, media: Media, chat: int, thread: int | None, buttons: InlineKeyboardMarkup | None = None
) -> None:
    """Raises `TelegramError`."""
    if media.data is None:
        await send_text(bot, f"[{media.name or media.mime}]", chat, thread, buttons)
        return
    data, name = base64.b64decode(media.data), media.name or media.mime.replace("/", ".")

    async def document(chat: int, thread: int | None) -> None:
        await bot.send_document(chat, data, filename=name, message_thread_id=thread, reply_markup=buttons)

    async def recording(chat: int, thread: int | None) -> None:
        try:
            await bot.send_voice(chat, data, filename=name, message_thread_id=thread, reply_markup=buttons)
        except BadRequest:  # people can refuse voice messages
            await document(chat, thread)

    async def photo(chat: int, thread: int | None) -> None:
        try:
            await bot.send_photo(chat, data, filename=name, message_thread_id=thread, reply_markup=buttons)
        except BadRequest:
            await document(chat, thread)

    is_photo = media.kind == "image" and media.mime in _PHOTO_TYPES and len(data) <= _MAX_PHOTO_BYTES
    send = recording if media.voice else photo if is_photo else document
    await _send_with_fallback(send, chat, thread)


async def _send_with_fallback(send: SendToChat, chat: int, thread: int | None) -> None:
    try:
        await send(chat, thread)
    except ChatMigrated as error:
        await send(error.new_chat_id, thread)
    except BadRequest as error:
        if thread is None or "thread not found" not in error.message.casefold():
            raise
        await send(chat, None)
