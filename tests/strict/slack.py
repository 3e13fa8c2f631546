"""A Slack that is as strict as the real one, on a real socket of this machine, in the loop of the test: its Web API,
its files, and Socket Mode.

People act with `say`, `edit`, `delete`, `press` and `command`; what the app did stands in `posted` and `calls`. As the
real one does:
- every method wants its scope, and a token of its own kind; a refusal is `ok: false` with Slack's word for it;
- an address for the socket is good for one connection; an envelope that is not acknowledged comes again, within a
  connection after a while and otherwise on the next one;
- a channel's history has no replies in threads, and metadata only where it is asked for;
- what happens while no socket is open is sent nowhere. (The real one tries some more times; the app must not rely on
  it.)
"""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import WSMsgType, web

from tests.strict.slack_people import ME, TEAM, Json, SlackPeople
from tests.strict.slack_rules import EVENT_SCOPES, SCOPE_OF, message_complaint

BOT_TOKEN, APP_TOKEN = "xoxb-1-strict-token-of-a-test", "xapp-1-strict-token-of-a-test"
_ACK_SECONDS = 3.0
SENDING = ("chat.postMessage", "files.completeUploadExternal")


class SlackApiFault(Exception):
    """An answer of the Web API that is not ok."""

    def __init__(self, error: str, status: int = 200, *, retry_after: float | None = None, **more: Any) -> None:
        super().__init__(error)
        self.status = status
        self.retry_after = retry_after
        self.more = more


Trouble = SlackApiFault | Literal["before", "after"]


class StrictSlack(SlackPeople):
    def __init__(self) -> None:
        super().__init__()
        self.bot_token, self.app_token = BOT_TOKEN, APP_TOKEN
        self.scopes = {*SCOPE_OF.values(), *EVENT_SCOPES, "commands"} - {""}
        self.socket_mode = True
        self.posted: list[Json] = []
        self.calls: list[tuple[str, Json]] = []
        self.complaints: list[str] = []
        self.troubles: dict[str, list[Trouble]] = {}
        self.acknowledged: list[str] = []
        self.connections = 0
        self._pending: dict[str, Json] = {}  # envelopes that were not acknowledged
        self._uploads: dict[str, tuple[str, int, bytes | None]] = {}
        self._tickets: set[str] = set()
        self._socket: web.WebSocketResponse | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------------------------------------ being there

    @property
    def tokens(self) -> str:
        return f"{self.bot_token} {self.app_token}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/api/"

    @property
    def is_connected(self) -> bool:
        return self._socket is not None

    async def __aenter__(self) -> Self:
        await self.go_online()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.go_offline()

    async def go_online(self) -> None:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/socket", self._serve_socket)
        app.router.add_post("/upload/{file}", self._take_upload)
        app.router.add_get("/files/{file}", self._give_file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.changes.notify()

    async def go_offline(self) -> None:
        """Nothing connects, what was connected breaks; what people say meanwhile is kept in the history."""
        runner, self._runner = self._runner, None
        for task in self._tasks:
            task.cancel()
        self.cut_socket()
        if runner is not None:
            await runner.cleanup()
        self.changes.notify()

    def cut_socket(self) -> None:
        """The connection breaks, without a word."""
        socket, self._socket = self._socket, None
        if socket is not None and socket._req is not None and socket._req.transport is not None:
            socket._req.transport.abort()

    def trouble(self, method: str, *troubles: Trouble) -> None:
        """What happens to the next calls of a method, or of all that send ("send")."""
        self.troubles.setdefault(method, []).extend(troubles)

    # ----------------------------------------------------------------------------------------------------------- socket

    def send_envelope(self, kind: str, payload: Json) -> None:
        if self._socket is None:
            return
        envelope = {"envelope_id": self._id("en"), "type": kind, "payload": payload, "retry_attempt": 0}
        envelope["accepts_response_payload"] = kind == "slash_commands"
        self._pending[envelope["envelope_id"]] = envelope
        self._start(self._send(self._socket, envelope))

    async def disconnect(self, reason: str) -> None:
        assert self._socket is not None
        await self._socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "strict"}})

    async def _send(self, socket: web.WebSocketResponse, envelope: Json) -> None:
        """Until it is acknowledged, or the connection ends."""
        while envelope["envelope_id"] in self._pending and not socket.closed and socket is self._socket:
            try:
                await socket.send_json(envelope)
            except ConnectionError:
                return
            await asyncio.sleep(_ACK_SECONDS)
            envelope["retry_attempt"] += 1

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_socket(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=401)
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A0TEST"}})
        self._socket = socket
        self.connections += 1
        self.changes.notify()
        for envelope in self._pending.values():
            envelope["retry_attempt"] += 1
            # Commands are not tried again: the person was told that it did not work.
            if envelope["type"] == "events_api":
                self._start(self._send(socket, envelope))
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self._acknowledge(json.loads(message.data))
        finally:
            if self._socket is socket:
                self._socket = None
            self.changes.notify()
        return socket

    def _acknowledge(self, answer: Json) -> None:
        envelope = answer.get("envelope_id", "")
        if envelope not in self._pending:
            self.complaints.append(f"acknowledged what was not sent: {answer}")
            return
        del self._pending[envelope]
        self.acknowledged.append(envelope)
        self.changes.notify()

    # ---------------------------------------------------------------------------------------------------------- Web API

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params = await _params(request)
        self.calls.append((method, params))
        waiting = self.troubles.get(method) or (self.troubles.get("send") if method in SENDING else None)
        trouble = waiting.pop(0) if waiting else None
        try:
            if trouble == "before":
                return _broken(request)
            if isinstance(trouble, SlackApiFault):
                raise trouble
            self._require_token(method, request.headers.get("Authorization", ""))
            answer = getattr(self, f"_{method.replace('.', '_').lower()}")(params)
        except SlackApiFault as fault:
            self.complaints.append(f"{method}: {fault}")
            headers = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            return web.json_response(
                {"ok": False, "error": str(fault), **fault.more}, status=fault.status, headers=headers
            )
        finally:
            self.changes.notify()
        if trouble == "after":
            return _broken(request)
        return web.json_response({"ok": True, **answer}, headers={"x-oauth-scopes": ",".join(sorted(self.scopes))})

    def _require_token(self, method: str, header: str) -> None:
        if method not in SCOPE_OF:
            raise SlackApiFault("unknown_method")
        wanted = self.app_token if method == "apps.connections.open" else self.bot_token
        if header != f"Bearer {wanted}":
            raise SlackApiFault("not_allowed_token_type" if self.bot_token in header else "invalid_auth")
        scope = SCOPE_OF[method]
        if method != "apps.connections.open" and scope and scope not in self.scopes:
            raise SlackApiFault("missing_scope", needed=scope, provided=",".join(sorted(self.scopes)))

    def _auth_test(self, params: Json) -> Json:
        return {"user": "nocturne", "user_id": ME, "team": "Test", "team_id": TEAM, "bot_id": "B0NOCTURNE"}

    def _apps_connections_open(self, params: Json) -> Json:
        if not self.socket_mode:
            raise SlackApiFault("socket_mode_not_enabled")
        ticket = self._id("t")
        self._tickets.add(ticket)
        return {"url": f"ws://127.0.0.1:{self._port}/socket?ticket={ticket}"}

    def _users_info(self, params: Json) -> Json:
        if params.get("user") not in self.names:
            raise SlackApiFault("user_not_found")
        return {"user": {"id": params["user"], "name": self.names[params["user"]], "profile": {}}}

    def _users_conversations(self, params: Json) -> Json:
        return {"channels": [self.channels[one] for one in sorted(self.members)], "response_metadata": {}}

    def _conversations_info(self, params: Json) -> Json:
        return {"channel": self._channel(params)}

    def _conversations_history(self, params: Json) -> Json:
        channel = self._channel(params)["id"]
        oldest = params.get("oldest", "0")
        said = [
            one
            for one in self.messages.get(channel, ())
            if one["ts"] > oldest and one.get("thread_ts", one["ts"]) == one["ts"]
        ]
        return _page(sorted(said, key=lambda one: str(one["ts"]), reverse=True), params)

    def _conversations_replies(self, params: Json) -> Json:
        channel, ts = self._channel(params)["id"], params["ts"]
        said = [one for one in self.messages.get(channel, ()) if ts in (one["ts"], one.get("thread_ts"))]
        if not said:
            raise SlackApiFault("thread_not_found")
        oldest = params.get("oldest", "0")
        return _page([one for one in said if one["ts"] > oldest or one["ts"] == ts], params)

    def _chat_postmessage(self, params: Json) -> Json:
        channel = self._writable(params)
        if complaint := message_complaint(params):
            raise SlackApiFault(complaint)
        message = self._post(channel, params.get("thread_ts"), text=params.get("text", ""))
        message |= {key: params[key] for key in ("blocks", "metadata") if key in params}
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _post(self, channel: str, thread: str | None, **fields: Any) -> Json:
        message = {"type": "message", "user": ME, "bot_id": "B0NOCTURNE", "ts": self.new_ts(), **fields}
        if thread:
            if not any(one["ts"] == thread for one in self.messages.get(channel, ())):
                raise SlackApiFault("thread_not_found")
            message["thread_ts"] = thread
        self.messages.setdefault(channel, []).append(message)
        self.posted.append({**message, "channel": channel})
        self.tell(channel, message)
        return message

    def _files_getuploadurlexternal(self, params: Json) -> Json:
        if not params.get("filename") or int(params.get("length", 0)) < 1:
            raise SlackApiFault("invalid_arguments")
        file = self._id("F")
        self._uploads[file] = (params["filename"], int(params["length"]), None)
        return {"upload_url": f"http://127.0.0.1:{self._port}/upload/{file}", "file_id": file}

    async def _take_upload(self, request: web.Request) -> web.Response:
        name, length, _ = self._uploads[request.match_info["file"]]
        data = await request.read()
        if len(data) != length:
            return web.Response(status=400)
        self._uploads[request.match_info["file"]] = (name, length, data)
        return web.Response(text=f"OK - {length}")

    def _files_completeuploadexternal(self, params: Json) -> Json:
        channel = self._writable({"channel": params.get("channel_id", "")})
        files = json.loads(params["files"]) if isinstance(params["files"], str) else params["files"]
        shared = []
        for one in files:
            name, length, data = self._uploads.pop(one["id"], ("", 0, None))
            if data is None:
                raise SlackApiFault("file_not_found")
            self.files[one["id"]] = (name, data)
            shared.append({"id": one["id"], "name": name, "title": one.get("title", name), "size": length})
        self._post(channel, params.get("thread_ts"), text="", files=shared, subtype="file_share")
        return {"files": shared}

    async def _give_file(self, request: web.Request) -> web.Response:
        file = request.match_info["file"]
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}" or "files:read" not in self.scopes:
            raise web.HTTPFound("https://slack.com/signin")
        if file not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[file][1])

    def _channel(self, params: Json) -> Json:
        channel = params.get("channel", "")
        if channel not in self.channels:
            raise SlackApiFault("channel_not_found")
        if channel not in self.members:
            raise SlackApiFault("not_in_channel")
        return self.channels[channel]

    def _writable(self, params: Json) -> str:
        channel = str(self._channel(params)["id"])
        if channel in self.archived:
            raise SlackApiFault("is_archived")
        return channel


async def _params(request: web.Request) -> Json:
    query = dict(request.query)
    if request.method == "GET" or query:
        return query
    if request.content_type == "application/json":
        return dict(await request.json())
    return {key: str(value) for key, value in (await request.post()).items()}


def _page(messages: list[Json], params: Json) -> Json:
    start, limit = int(params.get("cursor") or 0), int(params.get("limit", 100))
    page = [dict(one) for one in messages[start : start + limit]]
    if str(params.get("include_all_metadata", "")).lower() not in ("1", "true"):
        for one in page:
            one.pop("metadata", None)
    has_more = len(messages) > start + limit
    metadata = {"next_cursor": str(start + limit)} if has_more else {}
    return {"messages": page, "has_more": has_more, "response_metadata": metadata}


def _broken(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
