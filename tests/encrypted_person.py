"""Somebody whose Matrix app encrypts: their device's keys are those of matrix-nio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nio import AsyncClient, AsyncClientConfig, Event, MegolmEvent
from nio.api import Api

from tests.synapse import Synapse

_SECONDS = 40.0


class EncryptedPerson:
    """`events` are those of every room they are in, decrypted where they can be."""

    def __init__(self, server: Synapse, name: str, store: Path) -> None:
        self.user, self.password = server.register(name)
        store.mkdir()
        self.client = AsyncClient(
            server.url, self.user, store_path=str(store), config=AsyncClientConfig(encryption_enabled=True)
        )
        self.events: dict[str, list[Event]] = {}

    async def log_in(self) -> EncryptedPerson:
        await self.client.login(self.password)
        await self.look()
        return self

    async def look(self, wait: float = 0) -> None:
        synced = await self.client.sync(int(wait * 1000))
        for room, info in synced.rooms.join.items():
            self.events.setdefault(room, []).extend(info.timeline.events)
        await self.client.send_to_device_messages()
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        if self.client.should_query_keys:
            await self.client.keys_query()

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(_SECONDS):
            await self.look()
            while not true():
                await self.look(wait=20)

    async def room(self, *invited: str) -> str:
        state = [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]
        made = await self.client.room_create(invite=invited, is_direct=True, initial_state=state)
        return str(made.room_id)

    async def say(self, room: str, content: dict[str, Any]) -> str:
        sent = await self.client.room_send(room, "m.room.message", content, ignore_unverified_devices=True)
        return str(sent.event_id)

    async def encrypt(self, room: str, payload: dict[str, Any]) -> None:
        """Send what no app would, encrypted, once something was said there."""
        assert self.client.olm is not None
        content = self.client.olm.group_encrypt(room, payload)
        method, path, data = Api.room_send(self.client.access_token, room, "m.room.encrypted", content, str(payload))
        answer = await self.client.send(method, path, data)
        assert answer.status == 200, await answer.text()

    async def say_and_keep_the_key(self, room: str, text: str) -> Callable[[], Any]:
        """Say something in a new session whose key nobody gets; what sends it to everybody after all."""
        olm, people = self.client.olm, list(self.client.rooms[room].users)
        olm.create_outbound_group_session(room)
        missing = self.client.get_missing_sessions(room)
        if missing:
            await self.client.keys_claim(missing)
        keys = [one for _, one in olm.share_group_session_parallel(room, people, ignore_unverified_devices=True)]
        olm.outbound_group_sessions[room].shared = True
        await self.say(room, {"msgtype": "m.text", "body": text})

        async def give() -> None:
            for number, key in enumerate(keys):
                method, path, data = Api.to_device(self.client.access_token, "m.room.encrypted", key, f"late{number}")
                await (await self.client.send(method, path, data)).read()

        return give

    def texts(self, room: str, sender: str) -> list[str]:
        """What somebody said, edits in their place; what could not be decrypted is not there."""
        found: dict[str, str] = {}
        for event in self.events.get(room, []):
            content = event.source.get("content", {})
            if event.sender != sender or isinstance(event, MegolmEvent) or "body" not in content:
                continue
            relation = content.get("m.relates_to", {})
            replaces = relation.get("rel_type") == "m.replace"
            found[relation["event_id"] if replaces else event.event_id] = content.get("m.new_content", content)["body"]
        return list(found.values())

    def joined(self, room: str, user: str) -> bool:
        known = self.client.rooms.get(room)
        return known is not None and user in known.users and not known.users[user].invited

    async def aclose(self) -> None:
        await self.client.close()
