"""Answers for OpenAI-compatible clients: a request becomes one message of the person, and its answer is read from the
events of its conversation, like a terminal does.

A request repeated before its answer reached the client (after a broken connection, or a retry) is the same message: it
is accepted and answered once.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from assistant.bridges.terminal.bridge import Terminal, TerminalBridge
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.core.messages import Media
from assistant.core.records import IncomingMessage, is_answer_key
from assistant.core.sessions import session_scope
from assistant.web.client_threads import ClientThreads
from assistant.web.deps import DaemonControl
from assistant.web.schemas_chat import check_long_files
from assistant.web.schemas_completions import CompletionRequest

_ENDS = ("answered", "failed", "superseded")
# Interval of signs of life on a waiting connection; the answer of a finished turn comes sooner.
_IDLE_SECONDS = 2.0


class NoAnswer(AssistantError):
    """The message is kept, but has no answer; the text says why."""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """The answer to a request, as it is produced. `inbox_id` is None for a command, whose answer has no message."""

    session: str
    inbox_id: int | None
    texts: AsyncIterator[str]


class Completions:
    def __init__(self, control: DaemonControl, threads: ClientThreads, terminal: TerminalBridge) -> None:
        self._control = control
        self._threads = threads
        self._terminal = terminal
        self._placing = asyncio.Lock()

    @asynccontextmanager
    async def ask(
        self, request: CompletionRequest, is_gone: Callable[[], Awaitable[bool]], *, is_retry: bool
    ) -> AsyncIterator[ClientAnswer]:
        """Return once the message is durable; `texts` of the result yields the parts of the answer, and "" from time to
        time while there is nothing new. It raises `NoAnswer`, or `StoreError` if nothing can be stored. `is_retry`: the
        client says that it repeats a request it got no answer to. Whether the answer arrived is decided by `is_gone` at
        the end.

        Raises `UsageError` and `StoreError`."""
        with ExitStack() as stack:
            # Another request for the same place waits until this message is accepted, not until it is answered.
            async with self._placing:
                session, inbox_id = await self._find_place(request, is_retry)
                if self._is_command(request.new_text):
                    text = await self._control.command(request.new_text, session, bridge=self._terminal.name)
                    answer = ClientAnswer(session, None, _single(text))
                else:
                    # Before the turn can begin, so that no part of it is missed.
                    attached = stack.enter_context(self._terminal.attach(session))
                    if inbox_id is None:
                        inbox_id = await self._accept(session, request.new_text, request.media())
                    follower = _Follower(self._control, self._terminal, inbox_id, is_gone)
                    answer = ClientAnswer(session, inbox_id, follower.follow(attached))
            yield answer

    async def _find_place(self, request: CompletionRequest, is_retry: bool) -> tuple[str, int | None]:
        """Return the conversation, and the earlier accepted message that this one repeats, if any."""
        if request.session:
            return request.session, None
        said = [text for text in request.user_texts[:-1] if not self._is_command(text)]
        place = await self._threads.find_place([*said, request.new_text])
        if place.asked_before is None or self._is_command(request.new_text):
            return place.session, None
        asked = self._control.find_message(place.asked_before)
        if asked is not None and (is_retry or not self._terminal.has_delivered(asked.turn)):
            return asked.incoming.session, asked.id
        return self._threads.branch_before(place.asked_before), None

    async def _accept(self, session: str, text: str, media: tuple[Media, ...]) -> int:
        await check_long_files(media)
        bridge, scope = self._terminal.name, session_scope(session)
        name = f"completion-{uuid.uuid4()}"
        incoming = IncomingMessage(bridge, name, session, scope, "owner", "owner", text, media, target=session)
        accepted = await self._control.accept(incoming)
        self._threads.add(session, text, accepted.message_id)
        return accepted.inbox_id

    def _is_command(self, text: str) -> bool:
        return text.startswith("/") and text.split(maxsplit=1)[0] in self._control.commands.names()

    async def usage(self, answer: ClientAnswer) -> Mapping[str, Any]:
        """Return the usage of an answer, from `DaemonControl.result`; empty if unknown."""
        return {} if answer.inbox_id is None else (await self._control.result(answer.inbox_id))["usage"] or {}


async def _single(text: str) -> AsyncIterator[str]:
    yield text


class _Follower:
    """Follows one message to its answer."""

    def __init__(
        self, control: DaemonControl, terminal: TerminalBridge, inbox_id: int, is_gone: Callable[[], Awaitable[bool]]
    ) -> None:
        self._control = control
        self._terminal = terminal
        self._inbox_id = inbox_id
        self._is_gone = is_gone
        self._shown = ""
        # What came in the middle of the answer, whose sentence it would break.
        self._later: list[Mapping[str, Any]] = []

    async def follow(self, attached: Terminal) -> AsyncIterator[str]:
        result = await self._control.result(self._inbox_id)
        async for name, data in attached.events(_IDLE_SECONDS):
            if name == "notice" and data.get("disk"):
                raise StoreError(str(data["text"]))
            if name == "delta" and data["turn"] == result["turn"]:
                self._shown += data["text"]
                yield data["text"]
            elif name == "discard" and data["turn"] == result["turn"] and self._shown:
                # Text that was shown cannot be withdrawn: what follows is a new paragraph.
                self._shown = ""
                yield "\n\n"
            elif name == "deliver":
                is_answer = data["inbox_id"] == self._inbox_id and is_answer_key(data["key"])
                if is_answer:
                    result = await self._control.result(self._inbox_id)
                    yield self._rest_of(result)
                elif not data["waited"] and data["inbox_id"] not in (None, self._inbox_id):
                    continue  # another request waits for it
                elif self._shown:
                    self._later.append(data)
                    continue
                else:
                    yield _quote(data["body"])
                if not await self._acknowledge(data):
                    return
                if is_answer:
                    async for text in self._quote_later():
                        yield text
                    return
            elif name == "idle" and result["state"] in _ENDS:
                # Another client of the same person confirmed it.
                yield self._rest_of(result)
                async for text in self._quote_later():
                    yield text
                return
            else:
                result = await self._control.result(self._inbox_id)
                yield ""
        raise NoAnswer("The assistant is stopping. Your message is kept, and is answered when it runs again.")

    async def _quote_later(self) -> AsyncIterator[str]:
        for data in self._later:
            yield "\n\n" + _quote(data["body"]).rstrip("\n")
            if not await self._acknowledge(data):
                return

    async def _acknowledge(self, data: Mapping[str, Any]) -> bool:
        """Confirm a delivery, unless the client is gone and may not have it."""
        if await self._is_gone():
            return False
        with contextlib.suppress(UsageError):
            self._terminal.acknowledge(data["key"])
        return True

    def _rest_of(self, result: Mapping[str, Any]) -> str:
        """Return the part of the answer that was not shown yet."""
        if result["state"] != "answered":
            raise NoAnswer(result["error"] or "There is no answer to this message. It is kept.")
        reply = str(result["reply"])
        if reply.startswith(self._shown):
            return reply[len(self._shown) :]
        return f"\n\n{reply}"


def _quote(notice: str) -> str:
    """Quote a reminder, a notice, or an earlier answer that waited."""
    return "".join(f"> {line}\n" for line in notice.splitlines()) + "\n"
