"""Calls to Discord's HTTP API (version 10), file downloads, and translation of errors.

The token is only sent to Discord, and is in no error or log; files are fetched without it, and only from Discord's own
hosts. Nothing is retried here: the caller decides. A message may have arrived (`ambiguous`) unless Discord refused it,
or there was no connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ClientWebSocketResponse,
    FormData,
)

from assistant.core.errors import BridgeError

OFFICIAL = "https://discord.com/api/v10"
_FILE_HOSTS = ("cdn.discordapp.com", "media.discordapp.net")
_FILE_SECONDS = 120.0
_RETRY_SECONDS = 5.0
_MAX_EVENT_BYTES = 16_000_000
_USER_AGENT = "DiscordBot (https://discord.com, 1)"
# Refusals because of the account, not the message.
_UNAUTHORIZED = 40001
WRONG_TOKEN = "Discord does not accept the bot's token. `assistant bridge add discord` takes a new one."


class DiscordRefusal(BridgeError):
    """Discord answered with an error. `code` is Discord's own, 0 for none."""

    def __init__(self, text: str, code: int, **about: Any) -> None:
        super().__init__(text, **about)
        self.code = code


class DiscordApi:
    """A bot. `timeout` is in seconds per request."""

    def __init__(self, token: str, base_url: str, timeout: float) -> None:
        self._base_url = base_url
        self._host = urlsplit(base_url).netloc
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": _USER_AGENT}
        self._session = ClientSession(timeout=ClientTimeout(total=timeout))

    async def close(self) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, file: tuple[str, bytes] | None = None
    ) -> Any:
        """Return the answer, None if it is empty. Raises `BridgeError`."""
        options: dict[str, Any] = {} if body is None else {"json": body}
        if file is not None:
            form = FormData()
            form.add_field("payload_json", json.dumps(body), content_type="application/json")
            form.add_field("files[0]", file[1], filename=file[0], content_type="application/octet-stream")
            options = {"data": form, "timeout": ClientTimeout(total=_FILE_SECONDS)}
        with translate_discord_errors():
            async with self._session.request(method, self._base_url + path, headers=self._headers, **options) as answer:
                content = await _read_json(answer)
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    raise _refusal(answer, content)
        return content

    async def open_socket(self, address: str) -> ClientWebSocketResponse:
        """Connect to the gateway at the address that Discord gave. Raises `BridgeError`."""
        with translate_discord_errors():
            return await self._session.ws_connect(
                f"{address.rstrip('/')}/?v=10&encoding=json", max_msg_size=_MAX_EVENT_BYTES
            )

    async def download(self, address: str, max_bytes: int) -> bytes | None:
        """Return a file's content; None if it is not at Discord, Discord refuses it, or it is too large. Raises
        `BridgeError`."""
        place = urlsplit(address)
        if not (place.scheme == "https" and place.hostname in _FILE_HOSTS) and place.netloc != self._host:
            return None
        with translate_discord_errors():
            timeout = ClientTimeout(total=_FILE_SECONDS)
            async with self._session.get(address, timeout=timeout, allow_redirects=False) as answer:
                if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise BridgeError(f"Discord did not deliver a file (status {answer.status}).")
                if answer.status != HTTPStatus.OK:
                    return None
                data = bytearray()
                async for chunk in answer.content.iter_chunked(1 << 16):
                    data += chunk
                    if len(data) > max_bytes:
                        return None
        return bytes(data)


@contextmanager
def translate_discord_errors() -> Iterator[None]:
    """Translate errors of a call to `BridgeError`."""
    try:
        yield
    except ClientConnectorError:
        raise BridgeError("Discord cannot be reached.") from None
    except (ClientError, TimeoutError, ConnectionError) as error:
        raise BridgeError(f"The connection to Discord broke ({type(error).__name__}).", ambiguous=True) from None


async def _read_json(answer: ClientResponse) -> Any:
    raw = await answer.read()
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None


def _refusal(answer: ClientResponse, content: Any) -> BridgeError:
    about = content if isinstance(content, dict) else {}
    status, code, text = answer.status, int(about.get("code") or 0), str(about.get("message", ""))
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = about.get("retry_after", answer.headers.get("Retry-After", _RETRY_SECONDS))
        return DiscordRefusal("Discord asks to wait: too many messages.", code, retry_after=float(wait))
    if status == HTTPStatus.UNAUTHORIZED or code == _UNAUTHORIZED:
        return DiscordRefusal(WRONG_TOKEN, code)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return DiscordRefusal(
            f"Discord failed (status {status}).", code, ambiguous=status != HTTPStatus.SERVICE_UNAVAILABLE
        )
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or "code" in about:
        return DiscordRefusal(f"Discord refused ({text or status}). The message is kept.", code, refused=True)
    return DiscordRefusal("Something between here and Discord, perhaps a proxy, refuses the request.", code)
