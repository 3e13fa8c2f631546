"""Answers for OpenAI-compatible clients: a request becomes one message of the person's, and the answer to it is what
comes over the events of its conversation, as at a terminal.

A request that comes again while its answer has not reached the client (the connection broke, a client tried again) is
the same message: it is accepted once and answered once.
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
# How often a connection that waits shows that it is alive; the answer of a turn that ended comes sooner than that.
_IDLE_SECONDS = 2.0


class NoAnswer(AssistantError):
    """The message is kept, and there is no answer to it; the text says why."""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """The answer to a request, which comes. `inbox_id` is None for a command, whose answer is no message's."""

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
        """Once the message is durable; its `texts` are the answer's words as they come, "" from time to time while
        there is nothing new, and raise `NoAnswer`, or `StoreError` where nothing can be stored. `is_retry`: the client
        says that it asks again for an answer that it did not get. What `is_gone` says of the client at the end decides
        whether the answer has arrived.

        Raises `UsageError` and `StoreError`."""
        with ExitStack() as stack:
            # Another request for the same place waits until this message has its own; not until it is answered.
            async with self._placing:
                session, inbox_id = await self._find_place(request, is_retry)
                if self._is_command(request.new_text):
                    text = await self._control.command(request.new_text, session, bridge=self._terminal.name)
                    answer = ClientAnswer(session, None, _single(text))
                else:
                    # Before the turn can begin, so that no word of it is missed.
                    attached = stack.enter_context(self._terminal.attach(session))
                    if inbox_id is None:
                        inbox_id = await self._accept(session, request.new_text, request.media())
                    follower = _Follower(self._control, self._terminal, inbox_id, is_gone)
                    answer = ClientAnswer(session, inbox_id, follower.follow(attached))
            yield answer

    async def _find_place(self, request: CompletionRequest, is_retry: bool) -> tuple[str, int | None]:
        """The conversation, and the message in it that this one is, where it was accepted before."""
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
        """What the answer cost, as `DaemonControl.result` says it; nothing where nothing is known."""
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

    async def follow(self, attached: Terminal) -> AsyncIterator[str]:
        result = await self._control.result(self._inbox_id)
        async for name, data in attached.events(_IDLE_SECONDS):
            if name == "notice" and data.get("disk"):
                raise StoreError(str(data["text"]))
            if name == "delta" and data["turn"] == result["turn"]:
                self._shown += data["text"]
                yield data["text"]
            elif name == "discard" and data["turn"] == result["turn"] and self._shown:
                # What was shown cannot be taken back: what follows is a paragraph of its own.
                self._shown = ""
                yield "\n\n"
            elif name == "deliver":
                is_answer = data["inbox_id"] == self._inbox_id and is_answer_key(data["key"])
                if is_answer:
                    result = await self._control.result(self._inbox_id)
                    yield self._rest_of(result)
                elif data["waited"] or data["inbox_id"] in (None, self._inbox_id):
                    yield _quote(data["body"])
                else:
                    continue  # another request waits for it
                if await self._is_gone():
                    return
                with contextlib.suppress(UsageError):
                    self._terminal.acknowledge(data["key"])
                if is_answer:
                    return
            elif name == "idle" and result["state"] in _ENDS:
                # Another client of the same person confirmed it.
                yield self._rest_of(result)
                return
            else:
                result = await self._control.result(self._inbox_id)
                yield ""
        raise NoAnswer("The assistant is stopping. Your message is kept, and is answered when it runs again.")

    def _rest_of(self, result: Mapping[str, Any]) -> str:
        """What is still to be shown of the answer."""
        if result["state"] != "answered":
            raise NoAnswer(result["error"] or "There is no answer to this message. It is kept.")
        reply = str(result["reply"])
        if reply.startswith(self._shown):
            return reply[len(self._shown) :]
        return f"\n\n{reply}"


def _quote(notice: str) -> str:
    """A reminder, a notice or an earlier answer that waited, as a quotation."""
    return "".join(f"> {line}\n" for line in notice.splitlines()) + "\n"
