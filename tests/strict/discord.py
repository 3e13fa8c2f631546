"""A Discord that is as strict as the real one, on a real socket of this machine, in the loop of the test: its HTTP API
and its gateway, version 10.

People act with `say`, `edit`, `delete` and `press`; what the bot did stands in `sent` and `calls`. As the real one:
- the gateway ends a connection with 4004 for a wrong token, with 4014 for an intent that the bot was not given, and
  without heartbeats; a session goes on with its events behind the number that the bot names;
- a bot is told nothing of a direct conversation that it does not ask for by its number;
- under a nonce that is enforced one message is made, within some minutes;
- a message has up to 2,000 characters, a button's command up to 100.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import WSMsgType, web

from tests.strict.discord_rules import message_complaint
from tests.support.networks.probed_bridge import ChangeSignal

TOKEN = "MTIz.strict.token-of-a-test"
ME, OWNER = "900", "1001"
SERVER, ROOM = "700", "701"
NONCE_SECONDS = 180.0
_EPOCH = 1_420_070_400_000
_ALL_INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
_CONTENT = 1 << 15

Json = dict[str, Any]


class DiscordFault(Exception):
    """An answer with an error; without `code` it is a page of a proxy's."""

    def __init__(self, status: int, code: int | None, message: str = "", **more: Any) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.body = None if code is None else {"code": code, "message": message, **more}


Trouble = DiscordFault | Literal["before", "after"]


class StrictDiscord:
    def __init__(self) -> None:
        self.token = TOKEN
        self.intents = _ALL_INTENTS  # what the bot was given
        self.heartbeat = 41.25
        self.answers_heartbeats = True
        self.names = {ME: "nocturne", OWNER: "ann"}
        self.channels: dict[str, Json] = {ROOM: {"id": ROOM, "type": 0, "name": "boat-club", "guild_id": SERVER}}
        self.messages: dict[str, list[Json]] = {}
        self.sent: list[Json] = []
        self.calls: list[tuple[str, str, Json]] = []
        self.complaints: list[str] = []
        self.troubles: dict[str, list[Trouble]] = {}
        self.typing: list[str] = []
        self.pressed: list[str] = []
        self.files: dict[str, bytes] = {}
        self.changes = ChangeSignal()
        self.identified = self.resumed = 0
        self.ready = False
        self.elapsed: Callable[[], float] = time.monotonic
        self._nonces: dict[tuple[str, str], tuple[float, Json]] = {}
        self._session = ""
        self._events: list[Json] = []  # of the session
        self._socket: web.WebSocketResponse | None = None
        self._last_id = 0
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------------------------------------ being there

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/api/v10"

    @property
    def is_connected(self) -> bool:
        return self._socket is not None and self.ready

    async def __aenter__(self) -> Self:
        await self.go_online()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.go_offline()

    async def go_online(self) -> None:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_get("/gateway/", self._serve_gateway)
        app.router.add_get("/files/{file}", self._give_file)
        app.router.add_route("*", "/api/v10/{path:.+}", self._call)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.changes.notify()

    async def go_offline(self) -> None:
        """Nothing connects, what was connected breaks; what people say meanwhile is kept."""
        runner, self._runner = self._runner, None
        self.cut_gateway()
        if runner is not None:
            await runner.cleanup()
        self.changes.notify()

    def cut_gateway(self) -> None:
        """The connection breaks, without a word; the session stays."""
        socket, self._socket = self._socket, None
        if socket is not None and socket._req is not None and socket._req.transport is not None:
            socket._req.transport.abort()

    def forget_session(self) -> None:
        self._session = ""

    def trouble(self, what: str, *troubles: Trouble) -> None:
        """What happens to the next calls: "send" for messages, "download", otherwise a path."""
        self.troubles.setdefault(what, []).extend(troubles)

    def new_id(self) -> str:
        """Ids grow with time."""
        self._last_id = max(self._last_id + 1, (int(time.time() * 1000) - _EPOCH) << 22)
        return str(self._last_id)

    # ----------------------------------------------------------------------------------------------------------- people

    def direct(self, user: str) -> str:
        """The conversation between a person and the bot."""
        channel = f"5{user}"
        self.channels.setdefault(channel, {"id": channel, "type": 1, "recipients": [self.user(user)]})
        return channel

    def user(self, user: str) -> Json:
        return {"id": user, "username": self.names.get(user, user), "bot": user == ME}

    def say(self, text: str, *, user: str = OWNER, channel: str = "", **fields: Any) -> Json:
        """A message of a person, of `fields` as the API names them."""
        channel = channel or self.direct(user)
        message = self._make(channel, user, text, **fields)
        self.tell("MESSAGE_CREATE", message)
        return message

    def _make(self, channel: str, user: str, text: str, **fields: Any) -> Json:
        message = {"id": self.new_id(), "channel_id": channel, "author": self.user(user), "content": text, "type": 0}
        message |= {"mentions": [], "attachments": [], "edited_timestamp": None, "flags": 0, **fields}
        if f"<@{ME}>" in text:
            message["mentions"] = [self.user(ME)]
        self.messages.setdefault(channel, []).append(message)
        self.channels[channel]["last_message_id"] = message["id"]
        return message

    def edit(self, message: Json, text: str, *, edited: bool = True) -> None:
        message["content"] = text
        if edited:
            message["edited_timestamp"] = f"2026-11-28T12:00:00.{next(self._numbers):06}+00:00"
        self.tell("MESSAGE_UPDATE", message)

    def delete(self, message: Json) -> None:
        self.messages[message["channel_id"]].remove(message)
        self.tell("MESSAGE_DELETE", {"id": message["id"], "channel_id": message["channel_id"]})

    def press(self, message: Json, label: str, *, user: str = OWNER) -> Json:
        command = next(one["custom_id"] for one in buttons_of(message) if one["label"] == label)
        press = {"id": self.new_id(), "token": f"t{next(self._numbers)}", "type": 3, "message": message}
        press |= {"channel_id": message["channel_id"], "data": {"custom_id": command, "component_type": 2}}
        person = {"user": self.user(user)}
        self.tell("INTERACTION_CREATE", press | (person if self._is_direct(press) else {"member": person}))
        return press

    def _is_direct(self, data: Json) -> bool:
        return bool(self.channels[data["channel_id"]]["type"] == 1)

    def find(self, channel: str, message: str) -> Json:
        return next(one for one in self.messages.get(channel, ()) if one["id"] == message)

    def keep_file(self, name: str, data: bytes, mime: str) -> Json:
        file = self.new_id()
        self.files[file] = data
        address = f"http://127.0.0.1:{self._port}/files/{file}"
        return {"id": file, "filename": name, "content_type": mime, "size": len(data), "url": address}

    # ---------------------------------------------------------------------------------------------------------- gateway

    def tell(self, name: str, data: Json) -> None:
        """An event, kept for as long as the session may go on."""
        if "channel_id" in data and not self._is_direct(data):
            data = {**data, "guild_id": self.channels[data["channel_id"]]["guild_id"]}
        if self._session:
            event = {"op": 0, "t": name, "s": len(self._events) + 1, "d": json.loads(json.dumps(data))}
            self._events.append(event)
            if self._socket is not None and self.ready:
                self._start(self._send(self._socket, event))
        self.changes.notify()

    async def request_reconnect(self) -> None:
        assert self._socket is not None
        await self._socket.send_json({"op": 7, "d": None})

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _send(socket: web.WebSocketResponse, event: Json) -> None:
        if not socket.closed:
            try:
                await socket.send_json(event)
            except ConnectionError:
                return

    async def _serve_gateway(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            await socket.close(code=4012)
            return socket
        self._socket, self.ready = socket, False
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": self.heartbeat * 1000}})
        try:
            while True:
                message = await socket.receive(3 * self.heartbeat)
                if message.type != WSMsgType.TEXT:
                    break
                if code := await self._on_message(socket, json.loads(message.data)):
                    await socket.close(code=code)
                    break
        except TimeoutError:
            self.complaints.append("no heartbeat")
            await socket.close(code=4009)
        finally:
            if self._socket is socket:
                self._socket, self.ready = None, False
            self.changes.notify()
        return socket

    async def _on_message(self, socket: web.WebSocketResponse, message: Json) -> int:
        """The code with which the connection ends, 0 for none."""
        data = message["d"]
        match message["op"]:
            case 1:
                if self.answers_heartbeats:
                    await socket.send_json({"op": 11})
                return 0
            case 2:
                return await self._identify(socket, data)
            case 6:
                return await self._resume(socket, data)
        return 4001

    async def _identify(self, socket: web.WebSocketResponse, data: Json) -> int:
        if data["token"] != self.token:
            return 4004
        if data["intents"] & ~self.intents:
            return 4014
        self.identified += 1
        self._session, self._events = f"s{next(self._numbers)}", []
        ready = {"v": 10, "user": self.user(ME), "session_id": self._session, "private_channels": []}
        ready |= {"resume_gateway_url": f"ws://127.0.0.1:{self._port}/gateway", "guilds": [{"id": SERVER}]}
        self.tell("READY", ready)
        channels = [one for one in self.channels.values() if one["type"] != 1]
        threads = [one for one in channels if one["type"] == 11]
        self.tell(
            "GUILD_CREATE",
            {"id": SERVER, "channels": [one for one in channels if one not in threads], "threads": threads},
        )
        await self._begin(socket, 0)
        return 0

    async def _resume(self, socket: web.WebSocketResponse, data: Json) -> int:
        if data["token"] != self.token:
            return 4004
        if not self._session or data["session_id"] != self._session:
            await socket.send_json({"op": 9, "d": False})
            return 0
        if data["seq"] > len(self._events):
            return 4007
        self.resumed += 1
        self.tell("RESUMED", {})
        await self._begin(socket, data["seq"])
        return 0

    async def _begin(self, socket: web.WebSocketResponse, after: int) -> None:
        waiting = self._events[after:]
        self.ready = True
        for event in waiting:
            await self._send(socket, event)
        self.changes.notify()

    # --------------------------------------------------------------------------------------------------------- HTTP API

    async def _call(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        body, files = await _body(request)
        self.calls.append((request.method, path, body))
        kind = "send" if request.method == "POST" and path.endswith("/messages") else path
        waiting = self.troubles.get(kind)
        trouble = waiting.pop(0) if waiting else None
        try:
            if trouble == "before":
                return _broken(request)
            if isinstance(trouble, DiscordFault):
                raise trouble
            if request.headers.get("Authorization") != f"Bot {self.token}":
                raise DiscordFault(401, 0, "401: Unauthorized")
            answer = self._answer(request, path.split("/"), body, files)
        except DiscordFault as fault:
            self.complaints.append(f"{request.method} {path}: {fault}")
            if fault.body is None:
                return web.Response(text="<html>No.</html>", content_type="text/html", status=fault.status)
            return web.json_response(fault.body, status=fault.status)
        finally:
            self.changes.notify()
        if trouble == "after":
            return _broken(request)
        return web.Response(status=204) if answer is None else web.json_response(answer)

    def _answer(self, request: web.Request, path: list[str], body: Json, files: list[tuple[str, bytes]]) -> Any:
        match request.method, path:
            case "GET", ["gateway", "bot"]:
                return {"url": f"ws://127.0.0.1:{self._port}/gateway", "shards": 1}
            case "GET", ["users", "@me"]:
                return self.user(ME)
            case "GET", ["applications", "@me"]:
                return {"id": ME, "flags": 1 << 19 if self.intents & _CONTENT else 0}
            case "GET", ["channels", channel]:
                return self._channel(channel)
            case "GET", ["channels", channel, "messages"]:
                said = self.messages.get(self._channel(channel)["id"], [])
                page = [one for one in said if int(one["id"]) > int(request.query.get("after", 0))]
                return page[: int(request.query.get("limit", 50))][::-1]
            case "POST", ["channels", channel, "messages"]:
                return self._send_message(channel, body, files)
            case "POST", ["channels", channel, "typing"]:
                self.typing.append(self._channel(channel)["id"])
                return None
            case "POST", ["interactions", identity, _, "callback"] if body == {"type": 6}:
                self.pressed.append(identity)
                return None
        raise DiscordFault(404, 0, "404: Not Found")

    def _channel(self, channel: str) -> Json:
        if channel not in self.channels:
            raise DiscordFault(404, 10003, "Unknown Channel")
        return self.channels[channel]

    def _send_message(self, channel: str, body: Json, files: list[tuple[str, bytes]]) -> Json:
        self._channel(channel)
        if complaint := message_complaint(body, has_file=bool(files)):
            raise DiscordFault(400, 50035, complaint)
        known = self._nonces.get((channel, str(body.get("nonce", ""))))
        if body.get("enforce_nonce") and known is not None and self.elapsed() - known[0] < NONCE_SECONDS:
            return known[1]
        attachments = [self.keep_file(name, data, "application/octet-stream") for name, data in files]
        about = {"components": body.get("components", []), "attachments": attachments}
        message = self._make(channel, ME, body.get("content", ""), **about)
        self._nonces[channel, str(body.get("nonce", ""))] = (self.elapsed(), message)
        self.sent.append(message)
        self.tell("MESSAGE_CREATE", {**message, "nonce": body.get("nonce")})
        return message

    async def _give_file(self, request: web.Request) -> web.Response:
        """Addresses of files are signed: who fetches them needs no token, and must not show it."""
        if "Authorization" in request.headers:
            self.complaints.append("the token was shown to the file server")
        file = self.files.get(request.match_info["file"])
        return web.Response(status=404) if file is None else web.Response(body=file)


def buttons_of(message: Json) -> list[Json]:
    return [button for row in message.get("components", ()) for button in row["components"]]


async def _body(request: web.Request) -> tuple[Json, list[tuple[str, bytes]]]:
    if request.content_type == "application/json":
        return dict(await request.json()), []
    form = await request.post()
    payload: Any = form.get("payload_json", "{}")
    files = [(one.filename, one.file.read()) for one in form.values() if isinstance(one, web.FileField)]
    return json.loads(payload if isinstance(payload, str) else bytes(payload)), files


def _broken(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
