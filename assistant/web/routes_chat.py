"""Routes for conversations: messages in, events out, commands."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.bridges.terminal.feed import DeliveryMark
from assistant.core.errors import StoreError, UsageError
from assistant.core.logger import get_logger
from assistant.core.sessions import BRANCH_PREFIX, MAIN_SESSION
from assistant.web.deps import DaemonControl, OwnerReadApi
from assistant.web.errors import error_responses
from assistant.web.guard import is_guarded
from assistant.web.html_events import with_html
from assistant.web.large_bodies import LargeBodyRoute
from assistant.web.routers import api_router
from assistant.web.schemas_chat import (
    CommandAnswer,
    ConfirmationNeeded,
    DeliveryAcknowledged,
    DeliveryKey,
    MessageAccepted,
    MessageResult,
    NewMessage,
    OwnerSession,
    RowId,
    SessionChoice,
    TurnStopped,
    TypedCommand,
    check_long_files,
)
from assistant.web.schemas_read import as_html

log = get_logger()

_KEEPALIVE_SECONDS = 15.0
_MAX_SENT_TOGETHER = 64 * 1024
# Each may occupy a connection indefinitely: some are reserved for other requests.
MAX_EVENT_STREAMS = 64
# How long a client waits before it reconnects.
_RETRY_MILLISECONDS = 1000
# The id of a delivery, and its creation time.
_MARK_PATTERN = "^[0-9]{1,18}(-[0-9]{1,16})?$"
_STREAM_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": (
            "A stream of server-sent events, the data of each a JSON object. `hello` comes first. `deliver` is a reply "
            "or notice that stays: it has an id, and is confirmed by its `key` (`/v1/deliveries/ack`) or by coming "
            "again with its id. `turn`, `delta`, `tool`, `notice` and `discard` show what happens; they are "
            "provisional and are not repeated, but a client that comes while an answer is written gets what was "
            "written of it. `changed` tells that something that was said was undone or forgotten."
        ),
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def chat_routes(control: DaemonControl, reader: OwnerReadApi, terminal: TerminalBridge) -> list[BaseRoute]:
    return [*_message_routes(control, reader, terminal).routes, *_stream_routes(terminal).routes]


def _message_routes(control: DaemonControl, reader: OwnerReadApi, terminal: TerminalBridge) -> APIRouter:
    routes = api_router(tag="conversation", route_class=LargeBodyRoute)

    @routes.post("/messages", status_code=202, responses=error_responses(409, 413), summary="Say something")
    async def say(body: NewMessage) -> MessageAccepted:
        """Answers once the message is durable. Its answer comes with the events of its session."""
        if body.session.startswith(BRANCH_PREFIX):
            # Branches are made of a conversation, by a command; a thread begins with what is said in it.
            reader.session(body.session, None)
        incoming = body.incoming(terminal.name)
        await check_long_files(incoming.media)
        accepted = await control.accept(incoming)
        if accepted.conflicts:
            raise HTTPException(
                409,
                f"The external_id {body.external_id!r} belongs to another message, which is kept (inbox_id "
                f"{accepted.inbox_id}). This one was not accepted; send it with an external_id of its own.",
            )
        return MessageAccepted.model_validate(accepted, from_attributes=True)

    @routes.post("/commands", responses=error_responses(413), summary="Run a command")
    async def command(body: TypedCommand) -> CommandAnswer:
        if not body.argv:
            text = await control.command(body.text, body.session, bridge=terminal.name)
            return CommandAnswer(text=text, html=as_html(text) if body.html else None)
        done = await control.run_argv(body.argv, body.session, bridge=terminal.name, typed=body.typed)
        confirmation = done.confirmation
        return CommandAnswer(
            text=done.text,
            html=as_html(done.text) if body.html else None,
            remark=done.remark,
            value=done.value,
            exit_code=done.exit_code,
            confirmation=ConfirmationNeeded.model_validate(confirmation, from_attributes=True)
            if confirmation
            else None,
        )

    @routes.post("/stop", responses=error_responses(413), summary="Stop the turn that runs in a session")
    async def stop(body: SessionChoice) -> TurnStopped:
        return TurnStopped(stopped=await control.stop_turn(body.session))

    @routes.get("/results/{inbox_id}", responses=error_responses(404), summary="What became of a message")
    async def result(inbox_id: Annotated[RowId, Path()]) -> MessageResult:
        try:
            return MessageResult.model_validate(await control.result(inbox_id))
        except UsageError as error:
            raise HTTPException(404, str(error)) from None

    return routes


def _stream_routes(terminal: TerminalBridge) -> APIRouter:
    routes = api_router(tag="conversation")
    # Over TCP and on the control socket each: clients of the one leave room for the other.
    by_way = {guarded: _Streams(terminal) for guarded in (False, True)}

    @routes.get(
        "/events",
        response_class=StreamingResponse,
        responses={**error_responses(), **_STREAM_ANSWER},
        summary="What happens",
    )
    async def events(
        request: Request,
        session: OwnerSession = MAIN_SESSION,
        inbox_id: Annotated[RowId | None, Query(description="Deliveries that answer this message, or none.")] = None,
        after: Annotated[
            str | None, Query(pattern=_MARK_PATTERN, description="As Last-Event-ID, which goes before.")
        ] = None,
        last_event_id: Annotated[
            str | None,
            Header(
                pattern=_MARK_PATTERN, description="The id of the last delivery that you have: you get all after it."
            ),
        ] = None,
        html: Annotated[
            bool,
            Query(
                description="`deliver` has its text as `html`, too, and `delta` the blocks (paragraphs, lists, code) "
                "that changed: `html` is what they are from the block number `first` on. Words that come together are "
                "one event."
            ),
        ] = False,
    ) -> StreamingResponse:
        """Without an id: what waits to be delivered, and what comes from now on. With one: every delivery after it,
        each once, in order, whatever happened to the connection or the daemon meanwhile; naming it confirms those up
        to it."""
        streams = by_way[is_guarded(request.scope)]
        if streams.open >= MAX_EVENT_STREAMS:
            raise HTTPException(
                503, f"{MAX_EVENT_STREAMS} event streams are open, which is the limit. Close one of them."
            )
        last_id = last_event_id or after
        since = None if last_id is None else DeliveryMark.parse(last_id)
        frames = streams.frames(session, inbox_id, since, as_html=html)
        return StreamingResponse(frames, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    @routes.post("/deliveries/ack", responses=error_responses(404, 413), summary="Confirm a delivery")
    async def acknowledge(body: DeliveryKey) -> DeliveryAcknowledged:
        try:
            return DeliveryAcknowledged(acknowledged=terminal.acknowledge(body.key))
        except UsageError as error:
            raise HTTPException(404, str(error)) from None

    return routes


class _Streams:
    """The event streams over TCP, or on the control socket; `open` is their number."""

    def __init__(self, terminal: TerminalBridge) -> None:
        self.open = 0
        self._terminal = terminal

    async def frames(
        self, session: str, inbox_id: int | None, since: DeliveryMark | None, *, as_html: bool
    ) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            with self._terminal.attach(session, inbox_id, since) as attached:
                events, waiting = attached.events(_KEEPALIVE_SECONDS), bytearray()
                async for name, data in with_html(attached, events) if as_html else events:
                    waiting += KEEPALIVE_COMMENT if name == "idle" else _format_event(name, data)
                    # What comes together is sent together, up to a size at which the reader's speed counts.
                    if attached.queue.empty() or len(waiting) >= _MAX_SENT_TOGETHER:
                        yield bytes(waiting)
                        waiting.clear()
                if waiting:
                    yield bytes(waiting)
        except StoreError as error:
            # The answer has begun, so that no status can say it: the stream ends, and the client comes again.
            log.warning("an event stream ended", session=session, error=str(error))
        finally:
            self.open -= 1


def _format_event(name: str, data: Mapping[str, Any]) -> bytes:
    number = data["id"] if name in ("hello", "deliver") else None
    retry = _RETRY_MILLISECONDS if name == "hello" else None
    return format_sse_event(event=name, data_str=json.dumps(data, ensure_ascii=False), id=number, retry=retry)
