"""Routes for reading: conversations, messages, memories, sleep cycles, compactions, costs, status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.commands.general import StatusReport
from assistant.commands.usage import UsageAnswer
from assistant.core.errors import UsageError
from assistant.core.model_api import UsageKey
from assistant.core.sessions import MAIN_SESSION
from assistant.web.deps import DaemonControl, OwnerReadApi
from assistant.web.errors import error_responses
from assistant.web.routers import API_PREFIX, api_router
from assistant.web.schemas_chat import CommandAnswer, OwnerSession, RowId, UnicodeText, refuse_number, to_utc
from assistant.web.schemas_read import (
    CompactionList,
    ConversationDetails,
    ConversationEntry,
    ConversationList,
    FoundMemories,
    FoundMessages,
    MemoryEntries,
    MessagePage,
    SleepEntry,
    SleepList,
)

MaxResults = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
SearchText = Annotated[
    UnicodeText, Query(min_length=1, max_length=1000, pattern=r"\S", description="What to look for.")
]
UtcTime = Annotated[AwareDatetime, BeforeValidator(refuse_number), AfterValidator(to_utc)]
AsHtml = Annotated[bool, Query(description="Texts also as HTML that is safe to show.")]
# Types that a browser shows without running anything.
SHOWN_TYPES = {
    *("image/png", "image/jpeg", "image/gif", "image/webp"),
    *("audio/webm", "audio/ogg", "audio/mpeg", "audio/mp4", "audio/wav"),
}
After = Annotated[UtcTime | None, Query(description="From this time on; with its offset, as in 2026-03-01T00:00:00Z.")]
Before = Annotated[UtcTime | None, Query(description="Up to, and without, this time.")]


def read_routes(control: DaemonControl, reader: OwnerReadApi, terminal: TerminalBridge) -> list[BaseRoute]:
    groups = (
        _conversations(control, reader, terminal),
        _history(reader),
        _files(reader),
        _memories(reader),
        _running(control, reader),
    )
    return [route for group in groups for route in group.routes]


def _conversations(control: DaemonControl, reader: OwnerReadApi, terminal: TerminalBridge) -> APIRouter:
    routes = api_router(f"{API_PREFIX}/sessions", tag="sessions", responses=error_responses())

    @routes.get("", summary="Your conversations")
    async def sessions(limit: MaxResults = 10) -> ConversationList:
        """The ended ones too; `limit` is how many of each session."""
        return ConversationList(sessions=[ConversationEntry.from_row(row) for row in reader.sessions(limit)])

    @routes.get("/{session}", responses=error_responses(404), summary="One conversation")
    async def session(session: OwnerSession, number: Annotated[RowId | None, Query()] = None) -> ConversationDetails:
        """The current one of a session, or an earlier one by its number."""
        with _or_not_found():
            row, handover, summary = reader.session(session, number)
        return ConversationDetails.from_row(row, handover=handover, summary=summary)

    @routes.post("/{session}/end", responses=error_responses(404), summary="Put a conversation away")
    async def end(session: OwnerSession) -> CommandAnswer:
        """Learns from it and archives it; the next message in it begins a new one."""
        with _or_not_found():
            reader.session(session, None)
        return CommandAnswer(text=await control.command(f"/sessions end {session}", MAIN_SESSION, bridge=terminal.name))

    return routes


def _history(reader: OwnerReadApi) -> APIRouter:
    routes = api_router(tag="history", responses=error_responses())

    @routes.get("/messages", summary="What was said in a session")
    async def messages(
        session: OwnerSession = MAIN_SESSION,
        before: Annotated[
            RowId | None, Query(description="Only messages with smaller ids: for the page before.")
        ] = None,
        limit: MaxResults = 50,
        html: AsHtml = False,
    ) -> MessagePage:
        """The newest messages, oldest of them first."""
        records = await reader.recent_messages(session, limit=limit, before_id=before)
        return MessagePage.from_records(records, reader.spoken_among(records), html=html)

    @routes.get("/history", summary="Search what was said")
    async def history(
        q: SearchText,
        session: OwnerSession | None = None,
        after: After = None,
        before: Before = None,
        limit: MaxResults = 10,
    ) -> FoundMessages:
        hits = await reader.search(q, after, before, session=session, limit=limit)
        return FoundMessages.model_validate({"hits": hits})

    @routes.get("/history/{message_id}", responses=error_responses(404), summary="Read one message")
    async def message(
        message_id: Annotated[RowId, Path()],
        neighbours: Annotated[int, Query(ge=0, le=100)] = 0,
        html: AsHtml = False,
    ) -> MessagePage:
        """Whole, with so many on each side of it."""
        with _or_not_found():
            records = await reader.read_around(message_id, neighbours)
        return MessagePage.from_records(records, reader.spoken_among(records), html=html)

    return routes


def _files(reader: OwnerReadApi) -> APIRouter:
    routes = api_router(tag="history", responses=error_responses())

    @routes.get(
        "/history/{message_id}/files/{number}",
        responses={**error_responses(404), 200: {"description": "Its bytes.", "content": {"*/*": {}}}},
        response_class=Response,
        summary="A file that came with a message",
    )
    async def message_file(
        message_id: Annotated[RowId, Path()],
        number: Annotated[int, Path(ge=0, le=1000, description="Which one; the first is 0.")],
    ) -> Response:
        """Pictures and sound as what they are; everything else to be saved."""
        with _or_not_found():
            medium, content = await reader.read_file(message_id, number)
        shown = medium.mime in SHOWN_TYPES
        return Response(
            content,
            media_type=medium.mime if shown else "application/octet-stream",
            headers={
                "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{quote(medium.name)}",
                "Cache-Control": "private, max-age=3600",
            },
        )

    @routes.get(
        "/history/{message_id}/spoken",
        responses={**error_responses(404), 200: {"description": "Ogg Opus.", "content": {"audio/ogg": {}}}},
        response_class=Response,
        summary="An answer as it was spoken",
    )
    async def spoken(message_id: Annotated[RowId, Path()]) -> Response:
        """Of messages that are `spoken`."""
        with _or_not_found():
            content = await reader.read_recording(message_id)
        return Response(content, media_type="audio/ogg", headers={"Cache-Control": "private, max-age=3600"})

    return routes


def _memories(reader: OwnerReadApi) -> APIRouter:
    routes = api_router(f"{API_PREFIX}/memories", tag="memory", responses=error_responses())

    @routes.get("", responses=error_responses(404), summary="What is remembered")
    async def memories(
        former: bool = False,
        before: Annotated[
            UnicodeText,
            Query(max_length=100, description="Only what was said before this id: for the next page."),
        ] = "",
        limit: MaxResults = 100,
    ) -> MemoryEntries:
        """With `former` what is no longer true, too. `/forget` is a command (`POST /v1/commands`)."""
        with _or_not_found():
            page = await reader.memories(limit, former=former, before=before)
        return MemoryEntries.model_validate(page)

    @routes.get("/search", summary="Search what is remembered")
    async def search(
        q: SearchText,
        after: After = None,
        before: Before = None,
        as_of: Annotated[UtcTime | None, Query(description="What was known at this time.")] = None,
        limit: MaxResults = 10,
    ) -> FoundMemories:
        hits = await reader.recall(q, after, before, limit=limit, as_of=as_of)
        return FoundMemories.model_validate({"memories": hits})

    return routes


def _running(control: DaemonControl, reader: OwnerReadApi) -> APIRouter:
    routes = api_router(tag="running", responses=error_responses())

    @routes.get("/sleeps", summary="Reports of sleeps")
    async def sleeps(limit: MaxResults = 10, html: AsHtml = False) -> SleepList:
        reports = reader.list_sleeps(limit)
        texts = [reader.render_cycle_report(report) for report in reports]
        return SleepList(sleeps=[SleepEntry.from_report(*pair, html=html) for pair in zip(reports, texts, strict=True)])

    @routes.get("/compactions", summary="What was compacted in a session")
    async def compactions(session: OwnerSession = MAIN_SESSION, limit: MaxResults = 100) -> CompactionList:
        return CompactionList.model_validate({"compactions": reader.compactions(session, limit)})

    @routes.get("/usage", summary="What models cost, and may")
    async def usage(
        by: UsageKey = "day", days: Annotated[int, Query(ge=1, le=36_500, description="How far back.")] = 31
    ) -> UsageAnswer:
        return UsageAnswer.model_validate(reader.usage(by, days))

    @routes.get("/status", summary="How the assistant is")
    async def status() -> StatusReport:
        return StatusReport.model_validate(control.status())

    return routes


@contextmanager
def _or_not_found() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise HTTPException(404, str(error)) from None
