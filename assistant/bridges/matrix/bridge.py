"""The Matrix bridge: one account and one device on a homeserver, over matrix-nio.

- The gateway stores the position, not nio: the server's token is stored with the messages before it.
- A part has its own transaction id. For 24 hours Synapse answers a known id of the same device with the event created
  then, also if the resend is encrypted anew.
- The bridge's own directory only has the keys of encrypted rooms, which belong to the device.
- Everything shown before a turn's answer is provisional (`drafts`).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.client import MatrixClient
from assistant.bridges.matrix.cross_signing import is_device_verified, sign_device
from assistant.bridges.matrix.drafts import MatrixDrafts
from assistant.bridges.matrix.events import SyncPosition
from assistant.bridges.matrix.receiver import MatrixReceiver, has_events_since
from assistant.core.bridge_api import BridgeCapabilities, DeviceLogin, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError
from assistant.core.text import beside_loop

_EDIT_SECONDS = 2.0
# Synapse forgets transaction ids after a day; minus an hour for clock differences and queues.
_DEDUPE_SECONDS = 23 * 3600.0
_DEVICE_NAME = "Nocturne"
_ROOM_REPLACED = "A Matrix room was replaced by another one. Invite the assistant there: what waits is then sent there."


class MatrixBridge:
    """See `Bridge`."""

    name = "matrix"
    capabilities = BridgeCapabilities(
        edit=True,
        typing=True,
        media=True,
        max_length=form.MAX_TEXT_BYTES,
        length_unit="utf-8",
        dedupe_seconds=_DEDUPE_SECONDS,
    )

    def __init__(
        self,
        homeserver: str,
        login: DeviceLogin,
        *,
        store: Path,
        encryption: bool,
        invites: tuple[str, ...],
        is_owners: Callable[[str], bool],
        edit_seconds: float = _EDIT_SECONDS,
    ) -> None:
        """`store` is the bridge's own directory; live text is updated at most every `edit_seconds`."""
        self._homeserver = homeserver
        self._login = login
        self._store = store
        self._encryption = encryption
        self._invites = invites
        self._is_owners = is_owners
        self._client: MatrixClient | None = None
        self._drafts = MatrixDrafts(self._write_draft, self._erase_draft, self._set_typing, edit_seconds)
        # Concurrent messages to one room must not share its key at the same time.
        self._locks: dict[str, asyncio.Lock] = {}
        # Successors of rooms by the old room; "" if not known yet.
        self._moved_rooms: Mapping[str, str] = {}

    async def check(self) -> str:
        """As the port says, with a remark if the device is not verified, so that others may distrust its messages."""
        client = self._restore_session(MatrixClient(self._homeserver, None))
        try:
            await self._identify(client)
            verified = not self._encryption or await is_device_verified(client)
        finally:
            await client.close()
        return self._login.user if verified else f"{self._login.user} (device not verified)"

    async def run(self, inbound: InboundPort) -> None:
        self._moved_rooms = SyncPosition.parse(inbound.load_position(self.name)).moved_rooms()
        client = self._open_client()
        await self._identify(client)
        await client.sync_keys()
        if self._encryption:
            await sign_device(client, self._store)
        await MatrixReceiver(
            client, inbound, self._drafts, self._note_moved_rooms, self._invites, self._is_owners
        ).run()

    async def has_news(self, position: str) -> bool:
        """As the port says: keys of encrypted rooms stay on the server until a later position is requested."""
        since = SyncPosition.parse(position).since
        client = self._restore_session(MatrixClient(self._homeserver, None))
        try:
            return not since or await has_events_since(client, since)
        finally:
            await client.close()

    async def send(self, part: OutgoingPart) -> None:
        """As the port says. The first text of an answer replaces the draft of its turn, if there is one."""
        outgoing = part.item.outgoing
        target, media = outgoing.target, part.media
        if media is None:
            await self._send_text(part, form.answer_transaction_id(part.key, target, part.text))
            return
        room, thread = self._resolve_room(target)
        data = base64.b64decode(media.data or "")
        location = await self._open_client().upload_file(room, data, media.mime, media.name)
        kind = "audio" if media.voice else media.kind
        content = form.file_content(kind, media.mime, media.name, len(data), location)
        transaction = form.answer_transaction_id(part.key, target, form.file_fingerprint(media.name, data))
        await self._send_event(room, form.with_thread(content, thread), transaction)

    async def _send_text(self, part: OutgoingPart, transaction: str) -> None:
        target = part.item.outgoing.target
        room, thread = self._resolve_room(target)
        draft = ""
        if part.number == 1:
            draft = await self._drafts.claim_for_answer(target, part.key, answer=part.item.outgoing.kind == "reply")
            # A draft in a replaced room is left unchanged.
            draft = draft if room == form.parse_target(target)[0] else ""
        text = part.text
        write = partial(form.edit_content, draft, text) if draft else partial(form.message_content, text, thread)
        content = await beside_loop(len(text), write)
        try:
            await self._send_event(room, content, transaction)
        except BridgeError:
            if draft:
                self._drafts.release_claim(target, draft)
            raise

    def show(self, event: TurnEvent, target: str) -> None:
        if target.startswith("!"):
            self._drafts.show(event, target)

    async def aclose(self) -> None:
        await self._drafts.aclose()
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()
            if client.store is not None:
                client.store.database.close()

    # ----------------------------------------------------------------------------------------------------- for `drafts`

    async def _write_draft(self, target: str, content: dict[str, Any], transaction: str) -> str:
        room, _ = form.parse_target(target)
        if room in self._moved_rooms:
            raise BridgeError("Live text is not shown in a room that was replaced; the answer goes to the new one.")
        return await self._send_event(room, content, transaction)

    async def _erase_draft(self, target: str, event: str) -> None:
        room, _ = form.parse_target(target)
        await self._open_client().room_redact(room, event, tx_id=form.notice_transaction_id("erase", event))

    async def _set_typing(self, target: str, seconds: float) -> None:
        room, _ = form.parse_target(target)
        await self._open_client().room_typing(room, seconds > 0, int(seconds * 1000))

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def _send_event(self, room: str, content: dict[str, Any], transaction: str) -> str:
        async with self._locks.setdefault(room, asyncio.Lock()):
            return await self._open_client().send_message(room, content, transaction)

    def _note_moved_rooms(self, moved: Mapping[str, str]) -> None:
        self._moved_rooms = moved

    def _resolve_room(self, target: str) -> tuple[str, str]:
        """Return the room, or its successor, which has none of its threads. Raises `BridgeError` while the successor is
        unknown."""
        room, thread = form.parse_target(target)
        successor = self._moved_rooms.get(room)
        if successor == "":
            raise BridgeError(_ROOM_REPLACED)
        return (room, thread) if successor is None else (successor, "")

    # ----------------------------------------------------------------------------------------------------------- client

    def _open_client(self) -> MatrixClient:
        if self._client is None:
            if self._encryption:
                self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._client = self._restore_session(
                MatrixClient(self._homeserver, self._store if self._encryption else None)
            )
        return self._client

    def _restore_session(self, client: MatrixClient) -> MatrixClient:
        if not self._login.user or not self._login.device:
            raise BridgeError("`[matrix] user` and `device` are not set. `assistant bridge add matrix` sets them.")
        client.restore_session(self._login.user, self._login.device, self._login.token)
        return client

    async def _identify(self, client: MatrixClient) -> None:
        """Check that the token belongs to the account and device of the stored keys."""
        user, device = self._login.user, self._login.device
        answer = await client.request_json("GET", form.api_path("account", "whoami"))
        if answer.get("user_id") != user or answer.get("device_id", device) != device:
            raise BridgeError(
                f"The Matrix token belongs to {answer.get('user_id')} ({answer.get('device_id')}), not to {user} "
                f"({device}). `assistant bridge add matrix` sets all of them."
            )


async def login(homeserver: str, user: str, password: str) -> DeviceLogin:
    """Log in as a new device. Raises `BridgeError`."""
    client = MatrixClient(homeserver, None)
    client.user = user
    try:
        answer = await client.login(password, device_name=_DEVICE_NAME)
    finally:
        await client.close()
    return DeviceLogin(answer.user_id, answer.device_id, answer.access_token)
