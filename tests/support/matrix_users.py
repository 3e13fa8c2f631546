"""People on a Matrix server: `MatrixUser` over plain HTTP as an app would, `EncryptedMatrixUser` with a device whose
keys are those of matrix-nio.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
from nio import AsyncClient, AsyncClientConfig, Event, MegolmEvent
from nio.api import Api

from tests.support.synapse import Synapse

_SECONDS = 40.0
_numbers = itertools.count()


class MatrixUser:
    """`events` are those of every room they are in, in order; `typing` counts how often others were seen typing."""

    def __init__(self, server: Synapse, name: str = "", *, account: str = "") -> None:
        self.user, self.password = (account, "") if account else server.register(name)
        self.url = server.url
        self.http = httpx2.AsyncClient(base_url=server.url, timeout=_SECONDS)
        self.token = ""
        self.device = ""
        self.since = ""
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.typing: dict[str, int] = {}
        self.invited: set[str] = set()

    @classmethod
    async def shared_user(cls, server: Synapse, name: str) -> MatrixUser:
        """One that other tests are too: their rooms of before are none of this one's business."""
        if name not in server.shared:
            user, device, token = server.register_device(name)
            server.shared[name] = (user, device, token, "")
        user, device, token, since = server.shared[name]
        person = cls(server, account=user)
        person._signed_in(device, token)
        person.since = since
        return person

    def _signed_in(self, device: str, token: str) -> None:
        self.device, self.token = device, token
        self.http.headers["Authorization"] = f"Bearer {token}"

    async def log_in(self) -> MatrixUser:
        identifier = {"type": "m.id.user", "user": self.user}
        body = {"type": "m.login.password", "identifier": identifier, "password": self.password}
        answer = await self.request("POST", "/login", body)
        self._signed_in(answer["device_id"], answer["access_token"])
        return self

    async def request(self, method: str, path: str, body: Any = None, *, base: str = "/_matrix/client/v3") -> Any:
        """The server's answer. Raises `httpx2.HTTPStatusError`."""
        response = await self.http.request(method, base + path, json={} if body is None and method != "GET" else body)
        response.raise_for_status()
        return response.json()

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def create_room(self, *invited: str, **more: Any) -> str:
        body = {"preset": "private_chat", "invite": list(invited), **more}
        room: str = (await self.request("POST", "/createRoom", body))["room_id"]
        return room

    async def join(self, room: str) -> None:
        await self.request("POST", f"/join/{quote(room)}")

    async def members(self, room: str) -> set[str]:
        return set((await self.request("GET", f"/rooms/{quote(room)}/joined_members"))["joined"])

    async def set_state(self, room: str, kind: str, content: dict[str, Any], key: str = "") -> None:
        await self.request("PUT", f"/rooms/{quote(room)}/state/{kind}/{quote(key)}", content)

    # --------------------------------------------------------------------------------------------------------- messages

    async def send(self, room: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        path = f"/rooms/{quote(room)}/send/{kind}/person{next(_numbers)}"
        event: str = (await self.request("PUT", path, content))["event_id"]
        return event

    async def say(self, room: str, text: str, **more: Any) -> str:
        return await self.send(room, {"msgtype": "m.text", "body": text, **more})

    async def edit(self, room: str, event: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": event}
        return await self.send(room, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation})

    async def delete(self, room: str, event: str) -> None:
        await self.request("PUT", f"/rooms/{quote(room)}/redact/{quote(event)}/person{next(_numbers)}")

    async def upload(self, data: bytes, mime: str, name: str) -> str:
        response = await self.http.post(
            f"/_matrix/media/v3/upload?filename={quote(name)}", content=data, headers={"Content-Type": mime}
        )
        url: str = response.raise_for_status().json()["content_uri"]
        return url

    # ----------------------------------------------------------------------------------------------------- what is seen

    async def sync(self, wait: float = 0) -> None:
        """Take in what the server has for them; with `wait`, at most that many seconds until there is something."""
        self._take(await self.request("GET", self._sync(self.since, wait)))

    def sync_blocking(self) -> None:
        """The same without waiting for anybody in this process."""
        headers = {"Authorization": f"Bearer {self.token}"}
        response = httpx2.get(
            f"{self.url}/_matrix/client/v3{self._sync(self.since)}", headers=headers, timeout=_SECONDS
        )
        self._take(response.raise_for_status().json())

    async def wait_for_change(self, since: str) -> str:
        """Wait until something happened after `since`, without taking it in; where it happened."""
        synced = await self.request("GET", self._sync(since, 20))
        return str(synced["next_batch"])

    def _sync(self, since: str, wait: float = 0) -> str:
        room: dict[str, Any] = {"timeline": {"limit": 1000}}
        query = {"timeout": str(int(wait * 1000)), "filter": json.dumps({"room": room})}
        return "/sync?" + urlencode(query | ({"since": since} if since else {}))

    def _take(self, synced: dict[str, Any]) -> None:
        self.since = synced["next_batch"]
        self.invited.update(synced.get("rooms", {}).get("invite", {}))
        for room, news in synced.get("rooms", {}).get("join", {}).items():
            self.events.setdefault(room, []).extend(news["timeline"]["events"])
            for one in news["ephemeral"]["events"]:
                others = set(one["content"].get("user_ids", ())) - {self.user}
                self.typing[room] = self.typing.get(room, 0) + bool(one["type"] == "m.typing" and others)

    async def sync_until(self, true: Callable[[], Any]) -> None:
        """Look until it holds."""
        async with asyncio.timeout(_SECONDS):
            await self.sync()
            while not true():
                await self.sync(wait=20)

    def messages(self, room: str, sender: str) -> list[dict[str, Any]]:
        """The messages of somebody, as they read now: edited ones with their new text, deleted ones left out."""
        found: dict[str, dict[str, Any]] = {}
        for event in self.events.get(room, []):
            content = event["content"]
            if event["type"] == "m.room.redaction":
                found.pop(str(event.get("redacts") or content.get("redacts")), None)
            elif event["sender"] == sender and event["type"] == "m.room.message" and content:
                relation = content.get("m.relates_to", {})
                if relation.get("rel_type") == "m.replace" and relation["event_id"] in found:
                    before = found[relation["event_id"]]
                    drafts = (*before.get("drafts", ()), before["content"]["body"])
                    found[relation["event_id"]] = {**before, "content": content["m.new_content"], "drafts": drafts}
                elif relation.get("rel_type") != "m.replace":
                    found[event["event_id"]] = {**event, "first": content}
        return list(found.values())

    def texts(self, room: str, sender: str) -> list[str]:
        return [one["content"]["body"] for one in self.messages(room, sender)]

    async def aclose(self) -> None:
        await self.http.aclose()


class EncryptedMatrixUser:
    """`events` are those of every room they are in, decrypted where they can be."""

    def __init__(self, server: Synapse, name: str, store: Path) -> None:
        self.user, self.password = server.register(name)
        store.mkdir()
        self.client = AsyncClient(
            server.url, self.user, store_path=str(store), config=AsyncClientConfig(encryption_enabled=True)
        )
        self.events: dict[str, list[Event]] = {}

    async def log_in(self) -> EncryptedMatrixUser:
        await self.client.login(self.password)
        await self.sync()
        return self

    async def sync(self, wait: float = 0) -> None:
        synced = await self.client.sync(int(wait * 1000))
        for room, info in synced.rooms.join.items():
            self.events.setdefault(room, []).extend(info.timeline.events)
        await self.client.send_to_device_messages()
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        if self.client.should_query_keys:
            await self.client.keys_query()

    async def sync_until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(_SECONDS):
            await self.sync()
            while not true():
                await self.sync(wait=20)

    async def create_room(self, *invited: str) -> str:
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

    async def say_withholding_key(self, room: str, text: str) -> Callable[[], Any]:
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

    def has_joined(self, room: str, user: str) -> bool:
        known = self.client.rooms.get(room)
        return known is not None and user in known.users and not known.users[user].invited

    async def aclose(self) -> None:
        await self.client.close()
