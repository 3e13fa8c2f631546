"""The client of the Matrix bridge: matrix-nio, with our errors and additional guarantees.

Nothing is retried here: the outbox decides after a rate limit or an uncertain send (except that aiohttp repeats a
request once on a broken connection, with the same transaction id). Every refusal is a `BridgeError`. Nothing is sent
unencrypted to an encrypted room, or encrypted with a key that did not reach the server: nio considers a key shared even
if the request failed.
"""

from __future__ import annotations

import asyncio
import io
import json
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import ClientConnectorError, ClientError, ClientResponse
from nio import AsyncClient, AsyncClientConfig, Event, MatrixRoom, MegolmEvent, UnknownEvent
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from nio.events import ToDeviceEvent
from nio.exceptions import EncryptionError, GroupEncryptionError, OlmTrustError, ProtocolError
from nio.responses import ErrorResponse, RoomMessagesResponse, ShareGroupSessionResponse
from nio.store import SqliteStore
from peewee import PeeweeException

from assistant.bridges.matrix.events import JsonObject, MatrixAttachment, UndecryptedEvent
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger

log = get_logger()

_REQUEST_SECONDS = 30.0
_FILE_SECONDS = 120.0
# Enough for the state of large rooms; more would take too much memory when parsed.
_MAX_ANSWER_BYTES = 50_000_000
_RETRY_SECONDS = 5.0
# How often a file is requested that the server does not deliver.
_MAX_FILE_TRIES = 3

# These codes are about the account, the server, or a starting proxy, not one message. All other 4xx codes refuse the
# message.
_ACCOUNT_CODES = (
    "M_UNRECOGNIZED",
    "M_RESOURCE_LIMIT_EXCEEDED",
    "M_CONSENT_NOT_GIVEN",
    "M_USER_SUSPENDED",
    "M_USER_LOCKED",
    "ORG_MATRIX_EXPIRED_ACCOUNT",
)

# Kinds of events that may be encrypted. Membership and room settings never are: only the server sends them.
_ENCRYPTED_KINDS = ("m.room.message", "m.sticker")
# nio's errors for malformed events: the server cannot check encrypted content.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, RecursionError)

_LOGIN_AGAIN = "The Matrix server does not know this device any more. Log in again with `assistant bridge add matrix`."
_PASSWORD_NEEDED = "The Matrix server asks for the account's password, which is not kept."


class MatrixRefusal(BridgeError):
    """The server refused. `code` is Matrix's own."""

    def __init__(
        self,
        text: str,
        code: str,
        *,
        retry_after: float | None = None,
        ambiguous: bool = False,
        refused: bool = False,
    ) -> None:
        super().__init__(text, retry_after=retry_after, ambiguous=ambiguous, refused=refused)
        self.code = code

    @property
    def is_final(self) -> bool:
        """Return whether retrying is useless. Values that others can choose must not block anything."""
        return self.retry_after is None and not self.ambiguous


class MatrixClient(AsyncClient):  # type: ignore[misc] # nio is not typed
    """The device of one account on its server."""

    def __init__(self, homeserver: str, store: Path | None) -> None:
        """Without `store`, encrypted messages cannot be read or written."""
        config = AsyncClientConfig(
            store=SqliteStore,
            encryption_enabled=store is not None,
            store_sync_tokens=False,
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=_REQUEST_SECONDS,
        )
        super().__init__(homeserver.rstrip("/"), store_path="" if store is None else str(store), config=config)
        self._unshared_keys: dict[str, BridgeError] = {}
        self._file_failures: dict[str, int] = {}

    def restore_session(self, user: str, device: str, token: str) -> None:
        """Act as this device, with its stored keys. Raises `BridgeError`."""
        with translate_matrix_errors():
            self.restore_login(user, device, token)

    async def _send(self, response_class: type, *arguments: Any, **options: Any) -> Any:
        """Send any of nio's requests. Raises `BridgeError` for an answer of another type."""
        try:
            with translate_matrix_errors():
                response = await super()._send(response_class, *arguments, **options)
            if isinstance(response, ErrorResponse):
                raise _refusal(response)
        except BridgeError as error:
            if response_class is ShareGroupSessionResponse:
                self._unshared_keys[options["response_data"][0]] = error
            raise
        return response

    async def parse_body(self, transport_response: ClientResponse) -> dict[str, Any]:
        """Called by nio, which accepts most invalid answers: an error as room state, or a proxy's page as a shared key.
        Raises `BridgeError` for these, and for an answer that is too large."""
        try:
            data = await _read_limited(transport_response.content, _MAX_ANSWER_BYTES)
            if data is None:
                transport_response.close()
                text = f"The Matrix server's answer is larger than {_MAX_ANSWER_BYTES // 1_000_000} MB."
                raise BridgeError(text, ambiguous=True)
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        body = answer if isinstance(answer, dict) else {}
        if isinstance(answer, dict) and transport_response.status < HTTPStatus.BAD_REQUEST:
            return answer
        if "flows" in body:
            raise MatrixRefusal(_PASSWORD_NEEDED, "M_UNAUTHORIZED", refused=True)
        error = ErrorResponse(f"what it answers with {transport_response.status} is not Matrix")
        error = ErrorResponse.from_dict(body) if "errcode" in body else error
        error.transport_response = transport_response
        raise _refusal(error)

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def get_room(self, room_id: str) -> MatrixRoom:
        """Return the room, fetched if nothing was received from it yet."""
        if room_id not in self.rooms:
            try:
                await self.room_get_state_event(room_id, "m.room.encryption")
                encrypted = True
            except MatrixRefusal as refusal:
                if refusal.code != "M_NOT_FOUND":
                    raise
                encrypted = False
            self.rooms[room_id] = MatrixRoom(room_id, self.user_id, encrypted)
        return self.rooms[room_id]

    async def send_message(self, room_id: str, content: dict[str, Any], transaction: str) -> str:
        """Send a message, encrypted if the room is; return its id. Raises `BridgeError`."""
        room = await self.get_room(room_id)
        with translate_matrix_errors():
            if room.encrypted:
                await self._share_key(room)
            sent = await self.room_send(room_id, "m.room.message", content, transaction, ignore_unverified_devices=True)
        event: str = sent.event_id
        return event

    async def _share_key(self, room: MatrixRoom) -> None:
        """Share the key of the next message with everybody in the room."""
        if self.olm is None:
            raise BridgeError("This room is encrypted, and `[matrix] encryption` is off. Switch it on, then restart.")
        if not room.members_synced:
            await self.joined_members(room.room_id)
        if self.should_query_keys:
            await self.keys_query()
        if not self.olm.should_share_group_session(room.room_id):
            return
        self._unshared_keys.pop(room.room_id, None)
        try:
            await self.share_group_session(room.room_id, ignore_unverified_devices=True)
        finally:
            # Otherwise an interrupted share would block later messages.
            self.sharing_session.pop(room.room_id, None)
        if (error := self._unshared_keys.pop(room.room_id, None)) is not None:
            self.olm.outbound_group_sessions.pop(room.room_id, None)
            raise BridgeError(str(error), retry_after=error.retry_after)

    async def sync_keys(self) -> None:
        """Do what encryption needs between two syncs: upload own keys, query others'. Raises `BridgeError`."""
        if self.olm is None:
            return
        with translate_matrix_errors():
            await self.send_to_device_messages()
            if self.should_upload_keys:
                await self.keys_upload()
            if self.should_query_keys:
                await self.keys_query()
            if self.should_claim_keys:
                await self.keys_claim(self.get_users_for_key_claiming())

    # ------------------------------------------------------------------------------------------------------------ files

    async def fetch_file(self, file: MatrixAttachment, max_bytes: int) -> bytes | None:
        """Return a file; None if it is gone, unreadable, or larger than `max_bytes`. Raises `BridgeError` if it may be
        available later, but only a few times, so that one file does not block all later messages."""
        try:
            data = await self._download(file.url, max_bytes)
        except BridgeError:
            failures = self._file_failures[file.url] = self._file_failures.get(file.url, 0) + 1
            if failures < _MAX_FILE_TRIES:
                raise
            data = None
        self._file_failures.pop(file.url, None)
        if data is None or file.keys is None:
            return data
        try:
            plain: bytes = decrypt_attachment(
                data, file.keys["key"]["k"], file.keys["hashes"]["sha256"], file.keys["iv"]
            )
        except (EncryptionError, KeyError, TypeError, ValueError):
            return None
        return plain

    async def _download(self, url: str, max_bytes: int) -> bytes | None:
        server, _, media = url.removeprefix("mxc://").partition("/")
        path = "/".join(urllib.parse.quote(part, safe="", errors="replace") for part in ("download", server, media))
        headers = {"Authorization": f"Bearer {self.access_token}"}
        with translate_matrix_errors():
            async with asyncio.timeout(_FILE_SECONDS):
                response = await self.send("GET", f"/_matrix/client/v1/media/{path}", headers=headers, timeout=0)
                async with response:
                    if response.status == 429 or response.status >= 500:
                        raise BridgeError("The Matrix server cannot deliver a file now.", retry_after=_RETRY_SECONDS)
                    return await _read_limited(response.content, max_bytes) if response.status == 200 else None

    async def upload_file(self, room_id: str, data: bytes, mime: str, name: str) -> JsonObject:
        """Upload a file for a room, encrypted if the room is; return the part of a message with its location."""
        room = await self.get_room(room_id)
        body, keys = encrypt_attachment(data) if room.encrypted else (data, None)
        mime, name = ("application/octet-stream", "") if keys else (mime, name)
        with translate_matrix_errors():
            async with asyncio.timeout(_FILE_SECONDS):
                uploaded, _ = await self.upload(io.BytesIO(body), mime, name or None, filesize=len(body))
        return {"url": uploaded.content_uri} if keys is None else {"file": {**keys, "url": uploaded.content_uri}}

    # ------------------------------------------------------------------------------------------------------------ other

    async def request_json(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """Send a request that nio does not support, and return the answer. Raises `BridgeError`."""
        headers = {"Authorization": f"Bearer {self.access_token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        with translate_matrix_errors():
            async with await self.send(method, path, data, headers) as response:
                content: JsonObject = await self.parse_body(response)
        return content

    async def retry_decryption(self, unread: UndecryptedEvent) -> Event | None:
        """Decrypt an event whose key was missing; None if it still is. Raises `BridgeError`."""
        event = (await self.room_get_event(unread.room, unread.event)).event
        with translate_matrix_errors():
            return self._decrypted(event, unread.room) if isinstance(event, MegolmEvent) else event

    # ------------------------------------------------------------------------------------------------ what is decrypted

    def _decrypted(self, event: MegolmEvent, room_id: str) -> Event | None:
        """Return the decrypted message; None while its key is missing. Other encrypted events become unknown events,
        which change nothing and block nothing."""
        if self.olm is None:
            return None
        try:
            decrypted = self.olm.decrypt_megolm_event(event, room_id)
            source = decrypted.source
            if source["type"] in _ENCRYPTED_KINDS and "state_key" not in source and source["sender"] == event.sender:
                return decrypted
        except EncryptionError:
            return None
        except _MALFORMED as error:
            log.warning("an encrypted event cannot be read", message=event.event_id, error=type(error).__name__)
        return UnknownEvent(event.source, "m.room.encrypted")

    def decrypt_event(self, event: MegolmEvent) -> Event:
        """Called by nio for single events."""
        return self._decrypted(event, event.room_id) or event

    def _handle_timeline_event(
        self, event: Event, room_id: str, room: MatrixRoom, encrypted_rooms: set[str]
    ) -> Event | None:
        """Called by nio, which would accept an encrypted change of membership."""
        if isinstance(event, MegolmEvent) and self.olm is not None:
            event.room_id = room_id
            return self._decrypted(event, room_id)
        # Anyone may send an event that looks like room state; it is only state with a state key.
        if "state_key" not in event.source:
            return None
        return super()._handle_timeline_event(event, room_id, room, encrypted_rooms)

    def _handle_messages_response(self, response: RoomMessagesResponse) -> None:
        """Called by nio when reading missed messages."""
        for number, event in enumerate(response.chunk):
            if isinstance(event, MegolmEvent):
                response.chunk[number] = self._decrypted(event, event.room_id) or event

    def _handle_decrypt_to_device(self, to_device_event: ToDeviceEvent) -> ToDeviceEvent | None:
        """Called by nio: anyone may send a device anything."""
        try:
            return super()._handle_decrypt_to_device(to_device_event)
        except _MALFORMED as error:
            log.warning("a message to this device cannot be read", error=type(error).__name__)
            return None


@contextmanager
def translate_matrix_errors() -> Iterator[None]:
    """Translate errors of the server or the key store to `BridgeError`."""
    try:
        yield
    except ClientConnectorError as error:
        raise BridgeError(f"The Matrix server cannot be reached: {error}") from error
    except (ClientError, TimeoutError, ConnectionError) as error:
        text = str(error) or "no answer in time"
        raise BridgeError(f"The Matrix server did not answer: {text}", ambiguous=True) from error
    except (ProtocolError, OlmTrustError, EncryptionError, GroupEncryptionError) as error:
        raise BridgeError(f"Matrix encryption did not work: {error}") from error
    except (PeeweeException, OSError) as error:
        raise BridgeError(
            f"The Matrix keys could not be stored: {error}. Make room on the disk, or repair it."
        ) from error


def _refusal(response: ErrorResponse) -> MatrixRefusal:
    code, text = response.status_code or "", response.message
    transport = getattr(response, "transport_response", None)
    status = 0 if transport is None else transport.status
    if status == 429 or code == "M_LIMIT_EXCEEDED":
        wait = (response.retry_after_ms or 0) / 1000 or _RETRY_SECONDS
        return MatrixRefusal(f"The Matrix server asks to wait {wait:g} s.", code, retry_after=wait)
    if code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"):
        return MatrixRefusal(_LOGIN_AGAIN, code)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (code and 400 <= status < 500 and code not in _ACCOUNT_CODES):
        return MatrixRefusal(f"The Matrix server refused: {text} ({code or status}).", code, refused=True)
    # A proxy that refuses without a Matrix error did not forward the request.
    may_have_arrived = not 400 <= status < 500
    return MatrixRefusal(
        f"The Matrix server has a problem: {text or code or status}.", code, ambiguous=may_have_arrived
    )


async def _read_limited(stream: Any, max_bytes: int) -> bytes | None:
    data = bytearray()
    async for chunk in stream.iter_chunked(1 << 16):
        data += chunk
        if len(data) > max_bytes:
            return None
    return bytes(data)
