"""Calls to Slack's Web API with `slack_sdk`, its socket, file transfers, and translation of errors.

The tokens are only sent to Slack, and are in no error or log; a file with an address elsewhere is not downloaded.
Nothing is retried here: the caller decides. A message may have arrived (`ambiguous`) unless Slack refused it, or there
was no connection; according to Slack, `fatal_error` and `internal_error` may also be partly done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout, ClientWebSocketResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from assistant.core.errors import BridgeError

OFFICIAL = "https://slack.com/api/"
# The permissions of the app, as listed in docs/slack.md.
SCOPES = (
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "mpim:history",
    "mpim:read",
    "users:read",
)
_HEARTBEAT_SECONDS = 60.0
_FILE_SECONDS = 120.0
_RETRY_SECONDS = 5.0
_MAX_EVENT_BYTES = 4_000_000
_NOT_ACCEPTED = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "not_allowed_token_type"}
)
# These are about Slack's current state, not one message.
_SERVER_FAULTS = frozenset({"fatal_error", "internal_error", "request_timeout"})
_LATER = frozenset({"service_unavailable", "team_added_to_org", "org_login_required", "accesslimited"})


class SlackRefusal(BridgeError):
    """Slack answered with an error. `code` is Slack's own."""

    def __init__(self, text: str, code: str, **about: Any) -> None:
        super().__init__(text, **about)
        self.code = code


class SlackApi:
    """The Slack app in one workspace. `timeout` is in seconds per request."""

    def __init__(self, bot_token: str, app_token: str, base_url: str, timeout: float) -> None:
        self._app_token = app_token
        self._host = urlsplit(base_url).netloc
        self._session = ClientSession(timeout=ClientTimeout(total=timeout))
        self._headers = {"Authorization": f"Bearer {bot_token}"}
        self.web = AsyncWebClient(bot_token, base_url, session=self._session, retry_handlers=[])

    async def close(self) -> None:
        await self._session.close()

    async def call(self, request: Awaitable[Any]) -> Mapping[str, Any]:
        """Return the answer to a request of `web`. Raises `BridgeError`."""
        with translate_slack_errors():
            answer = await request
        return cast(Mapping[str, Any], answer.data)

    async def identify(self) -> Mapping[str, Any]:
        """Return the app's account. Raises `BridgeError`, also if permissions are missing."""
        with translate_slack_errors():
            answer = await self.web.auth_test()
        granted = answer.headers.get("x-oauth-scopes")
        if granted is not None and (missing := sorted(set(SCOPES) - {scope.strip() for scope in granted.split(",")})):
            raise BridgeError(
                f"The Slack app lacks scopes: {', '.join(missing)}. Add them under OAuth & Permissions, and install "
                "the app to the workspace again."
            )
        return cast(Mapping[str, Any], answer.data)

    async def socket_address(self) -> str:
        """Return an address for one connection. Raises `BridgeError`."""
        return str((await self.call(self.web.apps_connections_open(app_token=self._app_token)))["url"])

    async def open_socket(self) -> ClientWebSocketResponse:
        """Connect to an address of Socket Mode, which Slack gives out for one connection. Raises `BridgeError`."""
        address = await self.socket_address()
        with translate_slack_errors():
            return await self._session.ws_connect(address, heartbeat=_HEARTBEAT_SECONDS, max_msg_size=_MAX_EVENT_BYTES)

    async def upload(self, name: str, data: bytes, channel: str, thread: str) -> None:
        """Send a file. Raises `BridgeError`."""
        place = await self.call(self.web.files_getUploadURLExternal(filename=name, length=len(data)))
        with translate_slack_errors():
            timeout = ClientTimeout(total=_FILE_SECONDS)
            async with self._session.post(place["upload_url"], data=data, timeout=timeout) as answer:
                if answer.status != HTTPStatus.OK:
                    # Nothing is visible before the upload is completed.
                    raise BridgeError(f"Slack did not take the file {name} (status {answer.status}).")
        files = [{"id": place["file_id"], "title": name}]
        await self.call(
            self.web.files_completeUploadExternal(files=files, channel_id=channel, thread_ts=thread or None)
        )

    async def download(self, address: str, max_bytes: int) -> bytes | None:
        """Return a file's content; None if it is not at Slack, Slack refuses it, or it is too large. Raises
        `BridgeError`."""
        place = urlsplit(address)
        is_at_slack = place.scheme == "https" and (place.hostname or "").endswith(".slack.com")
        if not is_at_slack and place.netloc != self._host:
            return None
        with translate_slack_errors():
            timeout = ClientTimeout(total=_FILE_SECONDS)
            async with self._session.get(
                address, headers=self._headers, timeout=timeout, allow_redirects=False
            ) as answer:
                if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise BridgeError(f"Slack did not deliver a file (status {answer.status}).")
                # If the file may not be read, Slack answers with a login page.
                if answer.status != HTTPStatus.OK or (answer.content_length or 0) > max_bytes:
                    return None
                data = await answer.content.read(max_bytes + 1)
                while len(data) <= max_bytes and (more := await answer.content.read(max_bytes + 1)):
                    data += more
        return data if len(data) <= max_bytes else None


@contextmanager
def translate_slack_errors() -> Iterator[None]:
    """Translate errors of a call to `BridgeError`."""
    try:
        yield
    except SlackApiError as error:
        raise _refusal(error.response) from None
    except ClientConnectorError:
        raise BridgeError("Slack cannot be reached.") from None
    except (ClientError, TimeoutError, ConnectionError) as error:
        raise BridgeError(f"The connection to Slack broke ({type(error).__name__}).", ambiguous=True) from None


def _refusal(answer: Any) -> BridgeError:
    # `slack_sdk` raises with aiohttp's response if the answer is not JSON.
    data = getattr(answer, "data", None)
    data = data if isinstance(data, dict) else {}
    status, code = getattr(answer, "status_code", 0) or getattr(answer, "status", 0), str(data.get("error", ""))
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in ("ratelimited", "rate_limited"):
        wait = str(answer.headers.get("Retry-After", ""))
        seconds = float(wait) if wait.isdecimal() else _RETRY_SECONDS
        return SlackRefusal("Slack asks to wait: too many messages.", code, retry_after=seconds)
    if code in _NOT_ACCEPTED:
        return SlackRefusal(
            f"Slack does not accept a token of the app ({code}). `assistant bridge add slack` takes new ones.", code
        )
    if code == "missing_scope":
        return SlackRefusal(
            f"The Slack app lacks the scope {data.get('needed', '')}. Add it under OAuth & Permissions, and install "
            "the app to the workspace again.",
            code,
        )
    if code in _LATER or status == HTTPStatus.SERVICE_UNAVAILABLE:
        return SlackRefusal(f"Slack is not available ({code or status}).", code)
    if code in _SERVER_FAULTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR or not code:
        return SlackRefusal(f"Slack failed ({code or status}).", code, ambiguous=True)
    return SlackRefusal(f"Slack refused ({code}). The message is kept.", code, refused=True)
