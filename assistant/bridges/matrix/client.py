"""The Matrix bridge's client: matrix-nio, with the app's errors and promises that it does not make itself.

What always holds: nothing is tried again here, so that a rate limit and a doubtful send are the outbox's to decide on
(but where a connection broke aiohttp asks once more at once, under the same transaction id); every refusal is a
`BridgeError`. Nothing goes in the clear into a room that is encrypted, and nothing is encrypted with
a key that did not reach the server: nio takes a key for handed out even where the request for it failed.
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

import structlog
from aiohttp import ClientConnectorError, ClientError, ClientResponse
from nio import AsyncClient, AsyncClientConfig, Event, MatrixRoom, MegolmEvent, UnknownEvent
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from nio.events import ToDeviceEvent
from nio.exceptions import EncryptionError, GroupEncryptionError, OlmTrustError, ProtocolError
from nio.responses import ErrorResponse, RoomMessagesResponse, ShareGroupSessionResponse
from nio.store import SqliteStore
from peewee import PeeweeException

from assistant.bridges.matrix.events import JsonObject, MatrixAttachment
from assistant.bridges.matrix.sync_position import UndecryptedEvent
from assistant.core.errors import BridgeError

log = structlog.get_logger()

_REQUEST_SECONDS = 30.0
_FILE_SECONDS = 120.0
# The state of some large rooms; what is larger would be too much for the memory once it is read.
_MOST_ANSWER_BYTES = 50_000_000
_RETRY_SECONDS = 5.0
# So often a file is asked for that the server does not hand out.
_TRIES = 3

# What a server says of the account, of itself, or of what it does not know, while a proxy is half up: nothing that
# becomes of one message. Every other code with 4xx is a refusal.
_NOT_OF_THIS = (
    "M_UNRECOGNIZED",
    "M_RESOURCE_LIMIT_EXCEEDED",
    "M_CONSENT_NOT_GIVEN",
    "M_USER_SUSPENDED",
    "M_USER_LOCKED",
    "ORG_MATRIX_EXPIRED_ACCOUNT",
)

# What is sent encrypted. Who is in a room and what holds there is never: the server says so, nobody else.
_SAID = ("m.room.message", "m.sticker")
# What nio comes to grief over: the server can check nothing of what is encrypted.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, RecursionError)

_ADD_AGAIN = "The Matrix server does not know this device any more. Log in again with `assistant bridge add matrix`."
_WHO_IS_IT = "The Matrix server asks for the account's password, which is not kept."


class MatrixRefusal(BridgeError):
    """The server answered that it will not. `code` is Matrix' own."""

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
        """Whether what was asked for is not to be had. Of what others may name at will, no answer holds up anything."""
        return self.retry_after is None and not self.ambiguous


class MatrixClient(AsyncClient):  # type: ignore[misc] # nio is not typed
    """One account's device on its server."""

    def __init__(self, homeserver: str, store: Path | None) -> None:
        """Without `store` nothing encrypted can be read or written."""
        config = AsyncClientConfig(
            store=SqliteStore,
            encryption_enabled=store is not None,
            store_sync_tokens=False,
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=_REQUEST_SECONDS,
        )
        super().__init__(homeserver.rstrip("/"), store_path="" if store is None else str(store), config=config)
        self._unshared: dict[str, BridgeError] = {}
        self._failures: dict[str, int] = {}

    def restore_session(self, user: str, device: str, token: str) -> None:
        """As this device, with the keys that are kept for it. Raises `BridgeError`."""
        with translate_matrix_errors():
            self.restore_login(user, device, token)

    async def _send(self, response_class: type, *arguments: Any, **named: Any) -> Any:
        """Every request of nio goes through here. Raises `BridgeError` for whatever is not the answer asked for."""
        try:
            with translate_matrix_errors():
                response = await super()._send(response_class, *arguments, **named)
            if isinstance(response, ErrorResponse):
                raise _refusal(response)
        except BridgeError as error:
            if response_class is ShareGroupSessionResponse:
                self._unshared[named["response_data"][0]] = error
            raise
        return response

    async def parse_body(self, transport_response: ClientResponse) -> dict[str, Any]:
        """For nio, which takes most of what is no answer for one: an error where a state was asked for, or a proxy's
        page, which would say yes to a key that was handed out. Raises `BridgeError` for each, and for one without
        end."""
        try:
            data = await _at_most(transport_response.content, _MOST_ANSWER_BYTES)
            if data is None:
                transport_response.close()
                text = f"The Matrix server's answer is larger than {_MOST_ANSWER_BYTES // 1_000_000} MB."
                raise BridgeError(text, ambiguous=True)
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        told = found if isinstance(found, dict) else {}
        if isinstance(found, dict) and transport_response.status < HTTPStatus.BAD_REQUEST:
            return found
        if "flows" in told:
            raise MatrixRefusal(_WHO_IS_IT, "M_UNAUTHORIZED", refused=True)
        error = ErrorResponse(f"what it answers with {transport_response.status} is not Matrix")
        error = ErrorResponse.from_dict(told) if "errcode" in told else error
        error.transport_response = transport_response
        raise _refusal(error)

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def get_room(self, room_id: str) -> MatrixRoom:
        """The room, looked up where nothing was received of it yet."""
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
        """The id of the message, encrypted where the room is. Raises `BridgeError`."""
        room = await self.get_room(room_id)
        with translate_matrix_errors():
            if room.encrypted:
                await self._share_key(room)
            sent = await self.room_send(room_id, "m.room.message", content, transaction, ignore_unverified_devices=True)
        event: str = sent.event_id
        return event

    async def _share_key(self, room: MatrixRoom) -> None:
        """Everybody in the room has the key that the next message is encrypted with."""
        if self.olm is None:
            raise BridgeError("This room is encrypted, and `[matrix] encryption` is off. Switch it on, then restart.")
        if not room.members_synced:
            await self.joined_members(room.room_id)
        if self.should_query_keys:
            await self.keys_query()
        if not self.olm.should_share_group_session(room.room_id):
            return
        self._unshared.pop(room.room_id, None)
        try:
            await self.share_group_session(room.room_id, ignore_unverified_devices=True)
        finally:
            # What failed midway would keep every later message waiting.
            self.sharing_session.pop(room.room_id, None)
        if (error := self._unshared.pop(room.room_id, None)) is not None:
            self.olm.outbound_group_sessions.pop(room.room_id, None)
            raise BridgeError(str(error), retry_after=error.retry_after)

    async def sync_keys(self) -> None:
        """What encryption needs between two syncs: own keys handed in, others' looked up. Raises `BridgeError`."""
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

    async def fetch_file(self, file: MatrixAttachment, most: int) -> bytes | None:
        """What a file holds; None where it is gone, not to be had, or larger than `most` bytes. Raises `BridgeError`
        where it may be had later; not for ever, or one file would hold up all that was said after it."""
        try:
            data = await self._download(file.url, most)
        except BridgeError:
            failures = self._failures[file.url] = self._failures.get(file.url, 0) + 1
            if failures < _TRIES:
                raise
            data = None
        self._failures.pop(file.url, None)
        if data is None or file.keys is None:
            return data
        try:
            plain: bytes = decrypt_attachment(
                data, file.keys["key"]["k"], file.keys["hashes"]["sha256"], file.keys["iv"]
            )
        except (EncryptionError, KeyError, TypeError, ValueError):
            return None
        return plain

    async def _download(self, url: str, most: int) -> bytes | None:
        server, _, media = url.removeprefix("mxc://").partition("/")
        path = "/".join(urllib.parse.quote(one, safe="", errors="replace") for one in ("download", server, media))
        headers = {"Authorization": f"Bearer {self.access_token}"}
        with translate_matrix_errors():
            async with asyncio.timeout(_FILE_SECONDS):
                answer = await self.send("GET", f"/_matrix/client/v1/media/{path}", headers=headers, timeout=0)
                async with answer:
                    if answer.status == 429 or answer.status >= 500:
                        raise BridgeError("The Matrix server does not hand out a file now.", retry_after=_RETRY_SECONDS)
                    return await _at_most(answer.content, most) if answer.status == 200 else None

    async def upload_file(self, room_id: str, data: bytes, mime: str, name: str) -> JsonObject:
        """Hand in a file for a room, encrypted where the room is: what a message says of where it is."""
        room = await self.get_room(room_id)
        body, keys = encrypt_attachment(data) if room.encrypted else (data, None)
        mime, name = ("application/octet-stream", "") if keys else (mime, name)
        with translate_matrix_errors():
            async with asyncio.timeout(_FILE_SECONDS):
                kept, _ = await self.upload(io.BytesIO(body), mime, name or None, filesize=len(body))
        return {"url": kept.content_uri} if keys is None else {"file": {**keys, "url": kept.content_uri}}

    # ------------------------------------------------------------------------------------------------------------ other

    async def request_json(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """The server's answer to a request that nio has not. Raises `BridgeError`."""
        headers = {"Authorization": f"Bearer {self.access_token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        with translate_matrix_errors():
            async with await self.send(method, path, data, headers) as answer:
                found: JsonObject = await self.parse_body(answer)
        return found

    async def retry_decryption(self, unread: UndecryptedEvent) -> Event | None:
        """An event that could not be decrypted when it came; None where it still cannot. Raises `BridgeError`."""
        event = (await self.room_get_event(unread.room, unread.event)).event
        with translate_matrix_errors():
            return self._decrypted(event, unread.room) if isinstance(event, MegolmEvent) else event

    # ------------------------------------------------------------------------------------------------ what is decrypted

    def _decrypted(self, event: MegolmEvent, room_id: str) -> Event | None:
        """What was said there; None while its key is missing. Whatever else somebody encrypted is an event that says
        nothing: it makes nobody come, go or speak, and holds up nothing that comes after it."""
        if self.olm is None:
            return None
        try:
            found = self.olm.decrypt_megolm_event(event, room_id)
            said = found.source
            if said["type"] in _SAID and "state_key" not in said and said["sender"] == event.sender:
                return found
        except EncryptionError:
            return None
        except _MALFORMED as error:
            log.warning("what was encrypted cannot be read", message=event.event_id, error=type(error).__name__)
        return UnknownEvent(event.source, "m.room.encrypted")

    def decrypt_event(self, event: MegolmEvent) -> Event:
        """For nio, where one event was asked for."""
        return self._decrypted(event, event.room_id) or event

    def _handle_timeline_event(
        self, event: Event, room_id: str, room: MatrixRoom, encrypted_rooms: set[str]
    ) -> Event | None:
        """For nio, which would take an encrypted coming or going for a true one."""
        if isinstance(event, MegolmEvent) and self.olm is not None:
            event.room_id = room_id
            return self._decrypted(event, room_id)
        # Anybody may send what looks like a rule of the room; only with a state key is it one.
        if "state_key" not in event.source:
            return None
        return super()._handle_timeline_event(event, room_id, room, encrypted_rooms)

    def _handle_messages_response(self, response: RoomMessagesResponse) -> None:
        """For nio, where a gap is read."""
        for number, event in enumerate(response.chunk):
            if isinstance(event, MegolmEvent):
                response.chunk[number] = self._decrypted(event, event.room_id) or event

    def _handle_decrypt_to_device(self, to_device_event: ToDeviceEvent) -> ToDeviceEvent | None:
        """For nio: anybody may send a device anything."""
        try:
            return super()._handle_decrypt_to_device(to_device_event)
        except _MALFORMED as error:
            log.warning("what came to this device cannot be read", error=type(error).__name__)
            return None


@contextmanager
def translate_matrix_errors() -> Iterator[None]:
    """Whatever goes wrong with the server or the store of keys is a `BridgeError`."""
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
        raise BridgeError(f"The Matrix keys could not be kept: {error}. Make room or mend the disk.") from error


def _refusal(response: ErrorResponse) -> MatrixRefusal:
    code, text = response.status_code or "", response.message
    transport = getattr(response, "transport_response", None)
    status = 0 if transport is None else transport.status
    if status == 429 or code == "M_LIMIT_EXCEEDED":
        wait = (response.retry_after_ms or 0) / 1000 or _RETRY_SECONDS
        return MatrixRefusal(f"The Matrix server asks to wait {wait:g} s.", code, retry_after=wait)
    if code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"):
        return MatrixRefusal(_ADD_AGAIN, code)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (code and 400 <= status < 500 and code not in _NOT_OF_THIS):
        return MatrixRefusal(f"The Matrix server refused: {text} ({code or status}).", code, refused=True)
    # A proxy that refuses without a word of Matrix passed nothing on.
    taken = not 400 <= status < 500
    return MatrixRefusal(f"The Matrix server is in trouble: {text or code or status}.", code, ambiguous=taken)


async def _at_most(stream: Any, most: int) -> bytes | None:
    found = bytearray()
    async for chunk in stream.iter_chunked(1 << 16):
        found += chunk
        if len(found) > most:
            return None
    return bytes(found)
