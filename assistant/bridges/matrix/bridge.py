"""The Matrix bridge: one account and one device on a homeserver, over matrix-nio.

What always holds:
- Where receiving goes on is the door's to keep, never nio's: the server's token goes on with what came before it.
- A part goes out under a transaction id of its own. Synapse answers a known one with the event that it made then, for
  24 hours and this device; a resend is encrypted anew, which changes nothing about that.
- The keys of encrypted rooms are the one thing that stays in the bridge's own directory: they belong to the device.
- Everything that others see of a turn before its answer is provisional (`drafts`).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.client import MatrixClient
from assistant.bridges.matrix.cross_signing import is_device_verified, sign_device
from assistant.bridges.matrix.drafts import MatrixDrafts
from assistant.bridges.matrix.receiver import MatrixReceiver
from assistant.bridges.matrix.sync_position import SyncPosition
from assistant.core.bridge_api import BridgeCapabilities, DeviceLogin, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError

_EDIT_SECONDS = 2.0
# Synapse forgets transaction ids after a day; an hour is for clocks and queues.
_DEDUPE_SECONDS = 23 * 3600.0
_DEVICE_NAME = "Nocturne"
_REPLACED = "A Matrix room was replaced by another one. Invite the assistant there: what waits here goes there then."


class MatrixBridge:
    """See `bridge_ports.Bridge`."""

    name = "matrix"
    capabilities = BridgeCapabilities(
        edit=True,
        typing=True,
        media=True,
        threads=True,
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
        """`store` is a directory of the bridge's own; `edit_seconds` how often live text changes at most."""
        self._homeserver = homeserver
        self._login = login
        self._store = store
        self._encryption = encryption
        self._invites = invites
        self._is_owners = is_owners
        self._client: MatrixClient | None = None
        self._drafts = MatrixDrafts(self._write_draft, self._erase_draft, self._set_typing, edit_seconds)
        # Two messages to one room must not share its key side by side.
        self._locks: dict[str, asyncio.Lock] = {}
        # Where rooms that were replaced go on; "" for nowhere yet.
        self._moved: Mapping[str, str] = {}

    async def check(self) -> str:
        client = self._signed_in(MatrixClient(self._homeserver, None))
        try:
            await self._identify(client)
            verified = not self._encryption or await is_device_verified(client)
        finally:
            await client.close()
        return self._login.user if verified else f"{self._login.user} (device not verified)"

    async def run(self, inbound: InboundPort) -> None:
        self._moved = SyncPosition.parse(inbound.load_position(self.name)).moved_rooms()
        client = self._opened()
        await self._identify(client)
        await client.sync_keys()
        if self._encryption:
            await sign_device(client, self._store)
        await MatrixReceiver(client, inbound, self._drafts, self._move, self._invites, self._is_owners).run()

    async def send(self, part: OutgoingPart) -> None:
        outgoing = part.item.outgoing
        target, media = outgoing.target, part.media
        if media is None:
            await self._answer(part, form.answer_transaction_id(part.key, target, part.text))
            return
        room, thread = self._place(target)
        data = base64.b64decode(media.data or "")
        where = await self._opened().upload_file(room, data, media.mime, media.name)
        content = form.file_content(media.kind, media.mime, media.name, len(data), where)
        transaction = form.answer_transaction_id(part.key, target, form.file_fingerprint(media.name, data))
        await self._say(room, form.with_thread(content, thread), transaction)

    async def _answer(self, part: OutgoingPart, transaction: str) -> None:
        target = part.item.outgoing.target
        room, thread = self._place(target)
        draft = ""
        if part.number == 1:
            draft = await self._drafts.claim_for_answer(target, part.key, answer=part.item.outgoing.kind == "reply")
            # What stands in a room that was replaced stays as it is there.
            draft = draft if room == form.parse_target(target)[0] else ""
        content = form.edit_content(draft, part.text) if draft else form.message_content(part.text, thread)
        try:
            await self._say(room, content, transaction)
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
        if room in self._moved:
            raise BridgeError("What a turn writes is not shown in a room that was replaced; its answer goes on.")
        return await self._say(room, content, transaction)

    async def _erase_draft(self, target: str, event: str) -> None:
        room, _ = form.parse_target(target)
        await self._opened().room_redact(room, event, tx_id=form.notice_transaction_id("erase", event))

    async def _set_typing(self, target: str, seconds: float) -> None:
        room, _ = form.parse_target(target)
        await self._opened().room_typing(room, seconds > 0, int(seconds * 1000))

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def _say(self, room: str, content: dict[str, Any], transaction: str) -> str:
        async with self._locks.setdefault(room, asyncio.Lock()):
            return await self._opened().send_message(room, content, transaction)

    def _move(self, moved: Mapping[str, str]) -> None:
        self._moved = moved

    def _place(self, target: str) -> tuple[str, str]:
        """The room, or the one in which it goes on, where no thread of it is. Raises `BridgeError` while there is
        none."""
        room, thread = form.parse_target(target)
        now = self._moved.get(room)
        if now == "":
            raise BridgeError(_REPLACED)
        return (room, thread) if now is None else (now, "")

    # ----------------------------------------------------------------------------------------------------------- client

    def _opened(self) -> MatrixClient:
        if self._client is None:
            if self._encryption:
                self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._client = self._signed_in(MatrixClient(self._homeserver, self._store if self._encryption else None))
        return self._client

    def _signed_in(self, client: MatrixClient) -> MatrixClient:
        if not self._login.user or not self._login.device:
            raise BridgeError("`[matrix] user` and `device` are not set. `assistant bridge add matrix` sets them.")
        client.restore_session(self._login.user, self._login.device, self._login.token)
        return client

    async def _identify(self, client: MatrixClient) -> None:
        """The token has to be that of the account and device whose keys are kept here."""
        user, device = self._login.user, self._login.device
        found = await client.request_json("GET", form.api_path("account", "whoami"))
        if found.get("user_id") != user or found.get("device_id", device) != device:
            raise BridgeError(
                f"The Matrix token belongs to {found.get('user_id')} ({found.get('device_id')}), not to {user} "
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
