"""A Bot API that is as strict as Telegram's, on a real socket of this machine, in the loop of the test.

    async with StrictTelegram() as server:
        bridge = TelegramBridge(server.token, server.url)
        server.say("hello")

People act with `say`, `edit`, `press` and `put`; what the bot did stands in `sent`, `timeline` and `calls`. What it was
asked in the wrong way is refused in Telegram's words. As the real one does:
- updates are kept until a `getUpdates` asks for what comes after them, then they are gone for ever; an offset that lies
  far ahead of all there is counts as none;
- one long poll at a time: a second one ends the first with 409;
- names of methods are the same in any case; a wrong token is 401.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

from tests.strict.telegram_people import BOT, NOON, SentMessage, TelegramPeople
from tests.strict.telegram_rules import LONGEST_CAPTION, keyboard_complaint, loaded, text_complaint, units

TOKEN = "123456:strict-token-of-a-test"
_MESSAGES = ("sendmessage", "sendphoto", "senddocument")
_LARGEST = 20_000_000
_FAR_AHEAD = 10


class BotApiError(Exception):
    """Without a description it is a page of a proxy's."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters


Trouble = BotApiError | Literal["before", "after"]


class StrictTelegram(TelegramPeople):
    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.bot = {**BOT, "id": int(token.partition(":")[0])}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.complaints: list[str] = []
        self.offsets: list[int] = []
        # What happens to calls of a method ("send": of all that send messages), in order: they are refused, or the
        # connection breaks before or after they took effect.
        self.troubles: dict[str, list[Trouble]] = {}
        # Calls of these methods wait, before they take effect, until the event is set.
        self.gates: dict[str, asyncio.Event] = {}
        self.webhook = False
        self._poll: asyncio.Future[None] | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0

    # ------------------------------------------------------------------------------------------------------ being there

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.go_online()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.go_offline()

    async def go_online(self) -> None:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_post("/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def go_offline(self) -> None:
        """Nothing connects, what was connected breaks; what people say meanwhile is kept."""
        runner, self._runner = self._runner, None
        if runner is not None:
            if self._poll is not None:
                self._poll.cancel()
            await runner.cleanup()

    def trouble(self, method: str, *troubles: Trouble) -> None:
        """What happens to the next calls of a method: it is refused, or the connection breaks before or after."""
        self.troubles.setdefault(method.lower(), []).extend(troubles)

    # --------------------------------------------------------------------------------------------------------- serving

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"].lower()
        form = await request.post()
        params: dict[str, Any] = {
            key: value.file.read() if isinstance(value, web.FileField) else value for key, value in form.items()
        }
        names = {key: value.filename for key, value in form.items() if isinstance(value, web.FileField)}
        self.calls.append((method, params))
        trouble = self._trouble(method)
        try:
            if trouble == "before":
                return self._broken(request)
            if isinstance(trouble, BotApiError):
                raise trouble
            if method in self.gates:
                self.notify()
                await self.gates[method].wait()
            result = await self._answer(request.match_info["token"], method, {**params, "names": names})
        except BotApiError as refusal:
            return self._refused(refusal)
        finally:
            self.notify()
        return self._broken(request) if trouble == "after" else web.json_response({"ok": True, "result": result})

    def _trouble(self, method: str) -> Trouble | None:
        waiting = self.troubles.get(method) or (self.troubles.get("send") if method in _MESSAGES else None)
        return waiting.pop(0) if waiting else None

    @staticmethod
    def _broken(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _refused(self, refusal: BotApiError) -> web.Response:
        self.complaints.append(str(refusal))
        if not str(refusal):
            return web.Response(text="<html>No.</html>", content_type="text/html", status=refusal.status)
        answer: dict[str, Any] = {"ok": False, "error_code": refusal.status, "description": str(refusal)}
        if refusal.parameters:
            answer["parameters"] = refusal.parameters
        return web.json_response(answer, status=refusal.status)

    async def _answer(self, token: str, method: str, params: dict[str, Any]) -> Any:
        if token != self.token:
            raise BotApiError(401, "Unauthorized")
        if method == "getupdates":
            return await self._get_updates(params)
        answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "getme": lambda _: self.bot,
            "sendmessage": self._send_message,
            "sendphoto": self._send_photo,
            "senddocument": self._send_document,
            "sendvoice": self._send_voice,
            "sendchataction": self._send_action,
            "sendmessagedraft": self._send_draft,
            "answercallbackquery": self._answer_query,
            "getfile": self._get_file,
        }
        if method not in answers:
            raise BotApiError(404, "Not Found")
        return answers[method](params)

    async def _get_updates(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self.webhook:
            raise BotApiError(
                409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first"
            )
        offset, wait = int(params.get("offset", 0)), float(params.get("timeout", 0))
        self.offsets.append(offset)
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(
                BotApiError(409, "Conflict: terminated by other getUpdates request; make sure ...")
            )
        if 0 < offset <= self.next_update + _FAR_AHEAD:
            self.updates = [one for one in self.updates if one["update_id"] >= offset]
        if not self.updates and wait:
            await self._wait_for_updates(wait)
        return self.updates[: int(params.get("limit", 100))]

    async def _wait_for_updates(self, seconds: float) -> None:
        poll = self._poll = asyncio.get_running_loop().create_future()
        come = asyncio.ensure_future(self.until(lambda: bool(self.updates)))
        self.notify()
        try:
            await asyncio.wait((poll, come), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if poll.done():
                poll.result()
        finally:
            come.cancel()
            poll.cancel()

    @property
    def polling(self) -> bool:
        """Whether the bot waits for what comes."""
        return self._poll is not None and not self._poll.done()

    def end_poll(self) -> None:
        """The bot has waited for as long as it asked to, and nothing came."""
        assert self._poll is not None
        self._poll.set_result([])

    # --------------------------------------------------------------------------------------------------------- methods

    def _chat(self, params: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
        number = int(params["chat_id"])
        thread = int(params["message_thread_id"]) if "message_thread_id" in params else None
        if number in self.migrated:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise BotApiError(400, text, migrate_to_chat_id=self.migrated[number])
        if number not in self.chats:
            raise BotApiError(400, "Bad Request: chat not found")
        if number in self.blocked:
            raise BotApiError(403, "Forbidden: bot was blocked by the user")
        if thread is not None and (number, thread) not in self.topics:
            raise BotApiError(400, "Bad Request: message thread not found")
        return self.chats[number], thread

    def _send_message(self, params: dict[str, Any]) -> dict[str, Any]:
        self._chat(params)
        if complaint := text_complaint(params) or keyboard_complaint(params.get("reply_markup")):
            raise BotApiError(400, complaint)
        return self._keep(params, kind="text", text=str(params["text"]))

    def _send_photo(self, params: dict[str, Any]) -> dict[str, Any]:
        data = self._upload(params, "photo")
        if not data.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF")):
            raise BotApiError(400, "Bad Request: IMAGE_PROCESS_FAILED")
        return self._keep(params, kind="photo", file=data, file_name=params["names"]["photo"])

    def _send_document(self, params: dict[str, Any]) -> dict[str, Any]:
        data = self._upload(params, "document")
        return self._keep(params, kind="document", file=data, file_name=params["names"]["document"])

    def _send_voice(self, params: dict[str, Any]) -> dict[str, Any]:
        data = self._upload(params, "voice")
        if not data.startswith(b"OggS"):
            raise BotApiError(400, "Bad Request: wrong file type")
        return self._keep(params, kind="voice", file=data, file_name=params["names"]["voice"])

    def _upload(self, params: Mapping[str, Any], field_name: str) -> bytes:
        self._chat(params)
        data = params.get(field_name)
        if not isinstance(data, bytes) or not data:
            raise BotApiError(400, f"Bad Request: there is no {field_name} in the request")
        if units(str(params.get("caption", ""))) > LONGEST_CAPTION:
            raise BotApiError(400, "Bad Request: message caption is too long")
        if complaint := keyboard_complaint(params.get("reply_markup")):
            raise BotApiError(400, complaint)
        return data

    def _keep(self, params: Mapping[str, Any], *, kind: str, text: str = "", **file: Any) -> dict[str, Any]:
        chat, thread = self._chat(params)
        entities = loaded(params.get("entities"), [])
        raw = text.encode("utf-16-le")
        marked = [
            (one["type"], raw[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"))
            for one in entities
        ]
        rows = loaded(params.get("reply_markup"), {}).get("inline_keyboard", [])
        message = {"message_id": self.new_id(), "date": NOON, "chat": chat, "from": self.bot}
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        message |= {"text": text} if kind == "text" else {}
        links = [one["url"] for one in entities if "url" in one]
        buttons = [(button["text"], button["callback_data"]) for row in rows for button in row]
        about = {"kind": kind, "raw": message, **file}
        self.sent.append(SentMessage(message["message_id"], chat["id"], thread, text, marked, links, buttons, **about))
        self.timeline.append((chat["id"], "message", text))
        return message

    def _send_action(self, params: dict[str, Any]) -> bool:
        chat, _ = self._chat(params)
        if params.get("action") != "typing":
            raise BotApiError(400, "Bad Request: wrong parameter action in request")
        self.timeline.append((chat["id"], "typing", ""))
        return True

    def _send_draft(self, params: dict[str, Any]) -> bool:
        chat, _ = self._chat(params)
        if chat["type"] != "private":
            raise BotApiError(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        if not int(params.get("draft_id", 0)):
            raise BotApiError(400, "Bad Request: draft_id must be non-zero")
        if complaint := text_complaint(params, empty=True):
            raise BotApiError(400, complaint)
        self.timeline.append((chat["id"], "draft", str(params.get("text", ""))))
        return True

    def _answer_query(self, params: dict[str, Any]) -> bool:
        if params["callback_query_id"] in self.answered:
            raise BotApiError(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        self.answered.append(params["callback_query_id"])
        return True

    def _get_file(self, params: dict[str, Any]) -> dict[str, Any]:
        file = params["file_id"]
        if file not in self.files:
            raise BotApiError(400, "Bad Request: invalid file_id")
        if self.file_sizes[file] > _LARGEST:
            raise BotApiError(400, "Bad Request: file is too big")
        return {"file_id": file, "file_unique_id": f"u{file}", "file_path": f"documents/{file}"}

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file = request.match_info["path"].removeprefix("documents/")
        if request.match_info["token"] != self.token or file not in self.files:
            return self._refused(BotApiError(404, "Not Found"))
        trouble = self._trouble("download")
        if trouble == "before":
            return self._broken(request)
        if isinstance(trouble, BotApiError):
            return self._refused(trouble)
        return web.Response(body=self.files[file])
