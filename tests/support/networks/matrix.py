"""Matrix as the conformance suite plays it: the bridge over a real Synapse, with a proxy between them for its troubles,
and people who talk to Synapse itself.

The people, and the room where all of them are, are the same in every test of a process; the assistant's account and
the rooms between two are new.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, Literal

import httpx2

from assistant.bridges.matrix.bridge import MatrixBridge
from assistant.core.bridge_api import Bridge, DeviceLogin
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.support.matrix_proxy import FaultyMatrixProxy
from tests.support.matrix_users import MatrixUser
from tests.support.networks.network import (
    ConversationPlace,
    Network,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)
from tests.support.networks.probed_bridge import ChangeSignal
from tests.support.synapse import Synapse

_PEOPLE: tuple[PersonKind, ...] = ("owner", "guest", "stranger")


class MatrixNetwork:
    name = "matrix"
    abilities = NetworkAbilities(threads=True)

    def __init__(
        self, server: Synapse, proxy: FaultyMatrixProxy, people: dict[PersonKind, MatrixUser], login: DeviceLogin
    ) -> None:
        self._server = server
        self._proxy = proxy
        self._people = people
        self._bot = login
        self._rooms: dict[tuple[PersonKind, ConversationPlace], str] = {}
        self._said: dict[str, str] = {}
        self._again: list[tuple[str, dict[str, Any]]] = []
        self._files: dict[str, bytes] = {}
        self._typing: dict[str, int] = {}
        self._moves = ChangeSignal()
        self._receives = asyncio.Event()
        self._watching: dict[PersonKind, asyncio.Task[None]] = {}
        self._joining = httpx2.AsyncClient(
            base_url=server.url, headers={"Authorization": f"Bearer {login.token}"}, timeout=60
        )
        self.room = ""
        self._is_in_room = False
        proxy.on_request, proxy.on_answer = self._asked, self._answered

    async def open(self) -> None:
        if not self._server.room:
            self._server.room = await self._people["owner"].create_room(preset="public_chat", name="The room")
            for who in _PEOPLE[1:]:
                await self._people[who].join(self._server.room)
        self.room = self._server.room
        await self._private("owner")

    # ------------------------------------------------------------------------------------------------ the bridge's side

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge:
        return MatrixBridge(
            self._proxy.url,
            self._bot,
            store=settings.home.path / "bridges" / "matrix",
            encryption=False,
            invites=(),
            is_owners=lambda account: False,
            edit_seconds=0.0,
        )

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def _asked(self, method: str, path: str) -> None:
        if "/sync?" in path and "since=" in path:
            self._receives.set()
        if "/typing/" in path:
            room = path.split("/rooms/")[1].partition("/")[0]
            self._typing[room] = self._typing.get(room, 0) + 1
        self._moves.notify()

    def _answered(self, path: str, body: bytes) -> bytes:
        """What is to come again comes with the next news."""
        if not path.endswith("/sync") or not self._again:
            return body
        synced = json.loads(body)
        for room, event in self._again:
            empty: dict[str, Any] = {key: {"events": []} for key in ("timeline", "state", "ephemeral", "account_data")}
            news = synced.setdefault("rooms", {}).setdefault("join", {}).setdefault(room, empty)
            news["timeline"]["events"].insert(0, event)
        self._again.clear()
        return json.dumps(synced).encode()

    # ----------------------------------------------------------------------------------------------------- who is there

    def account(self, who: PersonKind) -> str:
        return self._people[who].user

    async def _private(self, who: PersonKind) -> str:
        if (who, "private") not in self._rooms:
            room = self._rooms[who, "private"] = await self._people[who].create_room(self._bot.user, is_direct=True)
            await self._join(room)
        return self._rooms[who, "private"]

    async def _join(self, room: str) -> None:
        (await self._joining.post(f"/_matrix/client/v3/join/{room}", json={})).raise_for_status()

    async def _place(self, who: PersonKind, where: ConversationPlace) -> str:
        return await self._shared_room() if where == "room" else await self._private(who)

    async def _shared_room(self) -> str:
        """Where everybody is; most tests leave it alone, and each account in it is work for the server."""
        if not self._is_in_room:
            self._is_in_room = True
            await self._join(self.room)
        return self.room

    # --------------------------------------------------------------------------------------------------- what people do

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        more: dict[str, Any] = {}
        if where == "room" and addressed:
            more["m.mentions"] = {"user_ids": [self._bot.user]}
        if thread:
            more["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread}
        return await self._send(who, await self._place(who, where), {"msgtype": "m.text", "body": text, **more})

    async def _send(self, who: PersonKind, room: str, content: dict[str, Any]) -> str:
        # A new account's past is not answered: its bridge has to be there before anybody says something.
        await self._receives.wait()
        event = await self._people[who].send(room, content)
        self._said[event] = room
        return event

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        await self._people[who].edit(self._said[message], message, text)

    async def delete(self, who: PersonKind, message: str) -> None:
        await self._people[who].delete(self._said[message], message)

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        raise NetworkRefused("Matrix has no buttons.")

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        return await self._send_file(who, "m.image", "image/png", "picture.png", data, caption)

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        return await self._send_file(who, "m.file", "text/plain", name, data, caption)

    async def _send_file(self, who: PersonKind, kind: str, mime: str, name: str, data: bytes, caption: str) -> str:
        url = await self._people[who].upload(data, mime, name)
        info = {"mimetype": mime, "size": len(data)}
        content = {"msgtype": kind, "body": caption or name, "filename": name, "url": url, "info": info}
        return await self._send(who, await self._private(who), content)

    async def redeliver(self, message: str) -> None:
        room = self._said[message]
        event = await self._people["owner"].request("GET", f"/rooms/{room}/event/{message}")
        self._again.append((room, event))

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        room = self.room if where == "room" else self._rooms.get((who, where), "")
        person = self._watched(who)
        person.sync_blocking()
        return tuple(self._seen(person, one) for one in person.messages(room, self._bot.user))

    def _seen(self, person: MatrixUser, event: dict[str, Any]) -> VisibleMessage:
        content = event["content"]
        relation = event["first"].get("m.relates_to", {})
        is_file = "url" in content
        return VisibleMessage(
            event["event_id"],
            "" if is_file else _read(content),
            len(content["body"].encode()),
            event.get("drafts", ()),
            thread=relation.get("event_id", "") if relation.get("rel_type") == "m.thread" else "",
            file=self._file(person, content["url"]) if is_file else None,
            file_name=content.get("filename", "") if is_file else "",
        )

    def _file(self, person: MatrixUser, url: str) -> bytes:
        if url not in self._files:
            path = url.removeprefix("mxc://")
            headers = {"Authorization": f"Bearer {person.token}"}
            answer = httpx2.get(f"{person.url}/_matrix/client/v1/media/download/{path}", headers=headers)
            self._files[url] = answer.raise_for_status().content
        return self._files[url]

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return self._typing.get(self.room if where == "room" else self._rooms.get((who, where), ""), 0)

    @property
    def send_attempts(self) -> int:
        return self._proxy.send_attempts

    async def wait_until(self, true: Callable[[], bool]) -> None:
        await self._moves.wait_until(true)

    def _watched(self, who: PersonKind) -> MatrixUser:
        """Whoever is looked at is watched from then on."""
        person = self._people[who]
        if who not in self._watching:
            self._watching[who] = asyncio.create_task(self._watch(person))
        return person

    async def _watch(self, person: MatrixUser) -> None:
        since = person.since  # what came before is of other tests
        while True:
            since = await person.wait_for_change(since)
            self._moves.notify()

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        self._proxy.refuse_sends(calls, retry_after)

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self._proxy.cut_connections(when, calls)

    async def go_offline(self) -> None:
        await self._proxy.go_offline()
        self._moves.notify()

    async def go_online(self) -> None:
        await self._proxy.go_online()
        self._moves.notify()

    async def aclose(self) -> None:
        for task in self._watching.values():
            task.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)
        for who, person in self._people.items():
            self._server.shared[who] = (person.user, person.device, person.token, person.since)
            await person.aclose()
        await self._joining.aclose()
        await self._proxy.aclose()


@asynccontextmanager
async def open_matrix_network(server: Synapse) -> AsyncIterator[Network]:
    people = {who: await MatrixUser.shared_user(server, who) for who in _PEOPLE}
    proxy = FaultyMatrixProxy(server.url)
    await proxy.start()
    network = MatrixNetwork(server, proxy, people, DeviceLogin(*server.register_device("nocturne")))
    try:
        await network.open()
        yield network
    finally:
        await network.aclose()


def _read(content: dict[str, Any]) -> str:
    """What an app shows of it."""
    formatted = content.get("formatted_body")
    return content["body"] if formatted is None else html.unescape(re.sub(r"<[^>]+>", "", formatted))
