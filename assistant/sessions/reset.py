"""Ends a conversation and begins the next, step by step.

Nothing is cleared before the archive was verified; nothing ends before it was extracted into the journal or queued for
it (F28, F31); the rollover itself is one record of the log and one transaction (`Conversation.begin_next_generation`).
Each step is durable before the next. If anything before the rollover fails, the old generation is unchanged, and the
conversation continues in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from assistant.core.archives import ArchiveEntry
from assistant.core.dataclass import dataclass
from assistant.core.errors import ArchiveUnavailable, AssistantError, NothingYet, StaleView, UsageError
from assistant.core.logger import get_logger
from assistant.core.records import SessionInfo
from assistant.core.sessions import (
    MAIN_SESSION,
    NOTHING_SAID,
    EndReason,
    Generation,
    GenerationEnd,
    SessionReset,
    session_name,
    session_role,
)
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.sessions.handover import EndedGeneration, summarise_generation, write_handover
from assistant.store.archive.archive import StoredArchive
from assistant.store.character.todos import StoredTodos
from assistant.store.script.generations import StoredGenerations, StoredResets
from assistant.store.script.turns import Delegations, UserRequests


@dataclass(frozen=True, slots=True)
class ResetStores:
    """The stores a reset uses."""

    conversation: Conversation
    generations: StoredGenerations
    resets: StoredResets
    archive: StoredArchive
    requests: UserRequests
    todos: StoredTodos
    delegations: Delegations


@dataclass(frozen=True, slots=True)
class ResetContext:
    """The parts of the running assistant a reset uses."""

    # extracts a session, to its end or until a time, and reports the result
    extract: Callable[[str, datetime, datetime], Awaitable[Mapping[str, Any]]]
    write_notes: Callable[[datetime], None]  # writes daily notes with what was extracted
    continue_extraction: Callable[[str], object]  # schedules extraction of the rest in the background
    # prevents turns of the session meanwhile; raises `UsageError` if that is not possible
    hold_session: Callable[[str], AbstractContextManager[None]]
    # prevents sleep cycles meanwhile; raises `UsageError` if that is not possible
    block_sleep: Callable[[], AbstractAsyncContextManager[None]]
    is_compacting: Callable[[str], bool]
    is_sleep_due: Callable[[datetime], bool]
    pressure: Callable[[str], Awaitable[float]]  # how full a context is
    count_tokens: Callable[[str], int]
    show_progress: Callable[[str, str], None]  # shows a line to connected clients
    clock: Callable[[], datetime]
    zone: tzinfo


log = get_logger()

_FIRST_PAUSE = timedelta(minutes=1)
MAX_RETRY_PAUSE = timedelta(hours=1)
_MOST_DOUBLINGS = 6
# In case something is written repeatedly while a generation is archived.
_MOST_TRIES = 5
_SUMMARY_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """Which conversation to end, and why."""

    session: str
    reason: EndReason
    late: bool = False  # long after it was due
    resumes: int | None = None  # number of the earlier generation that continues


@dataclass(frozen=True, slots=True)
class ResetResult:
    """A completed reset."""

    ended: Generation  # the generation that ended
    generation: int  # number of the new one
    archive: ArchiveEntry  # where the ended one is archived
    unread: int  # number of its messages still to be extracted
    note: str  # the handover note
    is_reading_on: bool = False  # unread messages are extracted right after this


class SessionResetter:
    """Carries out resets."""

    def __init__(
        self, stores: ResetStores, context: ResetContext, *, handover_tokens: int, learn_for: timedelta
    ) -> None:
        self._stores = stores
        self._context = context
        self._handover_tokens = handover_tokens
        self._learn_for = learn_for

    async def reset_session(self, request: ResetRequest) -> ResetResult:
        """Raises `UsageError` if it is not possible now, `ArchiveUnavailable` if it waits for the archive,
        `StoreError`; the conversation is then unchanged."""
        stores, context = self._stores, self._context
        generation = self._current(request)
        async with context.block_sleep():
            if context.is_compacting(request.session):
                raise UsageError(
                    f"{session_name(request.session)} is being compacted. Nothing was changed; try again in a minute."
                )
            with context.hold_session(request.session):
                now = context.clock()
                begun = SessionReset(
                    generation.session,
                    generation.number,
                    generation.scope,
                    request.reason,
                    "begun",
                    now,
                    request.resumes,
                    round(await context.pressure(generation.session), 4),
                )
                reset = stores.resets.begin(begun)
                more = await self._extract(request)
                done = await self._end(request, reset)
        if more and done.unread:
            context.continue_extraction(request.session)
        return replace(done, is_reading_on=more)

    def _current(self, request: ResetRequest) -> Generation:
        """Raises `UsageError` if there is nothing to end."""
        generations = self._stores.generations.list_generations(request.session, newest=1)
        if not generations and request.session == MAIN_SESSION:
            raise NothingYet(NOTHING_SAID)
        if not generations:
            raise UsageError(
                f"There is no session {session_name(request.session)!r}. Nothing was changed; `/sessions` lists them."
            )
        empty = generations[-1].first_at is None and generations[-1].resumed is None
        if empty and request.resumes is None:
            raise UsageError(
                f"Nothing was said in {session_name(request.session)} since it began. Nothing was changed."
            )
        return generations[-1]

    async def _extract(self, request: ResetRequest) -> bool:
        """Extract unread messages within the time limit; return whether more could be read now. The rest is queued when
        the generation ends."""
        self._context.show_progress(
            request.session, f"Reading {session_name(request.session)} for what is worth remembering…"
        )
        now = self._context.clock()
        try:
            outcome = await self._context.extract(request.session, now, now + self._learn_for)
        except AssistantError as error:
            log.warning("read at the next sleep", session=request.session, error=str(error))
            return False
        self._context.write_notes(now)
        return bool(outcome["waiting"]) and not outcome["error"]

    async def _end(self, request: ResetRequest, reset: SessionReset) -> ResetResult:
        for _ in range(_MOST_TRIES):
            # Repeated: something may have been written while it was archived.
            ended = self._describe_ended(request)
            seq = self._stores.generations.last_seq(request.session)
            archived = await self._archive(request, ended, reset)
            where = archived.url if session_role(request.session) == "owner" else ""
            note = self._note(replace(ended, archive=where))
            if archived.records and archived.to_seq != seq:
                continue
            self._stores.resets.mark_archived(reset.session, reset.generation)
            ending = GenerationEnd(
                reset.session, reset.generation, seq, note, request.reason, ended.sources, request.resumes
            )
            try:
                info = self._stores.conversation.begin_next_generation(ending, self._context.clock())
            except StaleView:
                continue
            return self._done(info, archived, note)
        raise UsageError(
            f"{session_name(request.session)} kept changing while it was archived. Nothing was removed; try again."
        )

    async def _archive(self, request: ResetRequest, ended: EndedGeneration, reset: SessionReset) -> ArchiveEntry:
        """Raises `ArchiveUnavailable`: then the reset waits."""
        self._context.show_progress(request.session, f"Archiving {pluralize(ended.messages, 'message')}…")
        summary = summarise_generation(ended, _SUMMARY_TOKENS, self._context.count_tokens, self._context.zone)
        note = self._note(ended)
        archive, now = self._stores.archive, self._context.clock()

        def store() -> ArchiveEntry:
            archive.remove_partial()
            return archive.store(
                reset.session, reset.generation, now, handover=note, summary=summary, reason=request.reason
            )

        try:
            return await asyncio.to_thread(store)
        except ArchiveUnavailable as error:
            pause = min(MAX_RETRY_PAUSE, _FIRST_PAUSE * 2 ** min(reset.attempts, _MOST_DOUBLINGS))
            self._stores.resets.postpone(reset.session, reset.generation, str(error), self._context.clock() + pause)
            minutes = int(pause.total_seconds() // 60)
            raise ArchiveUnavailable(
                f"{session_name(reset.session)} was not reset and continues. {error} The next try is in {minutes} min; "
                f"`/reset {session_name(reset.session)} --cancel` cancels it."
            ) from error

    def _note(self, ended: EndedGeneration) -> str:
        return write_handover(ended, self._handover_tokens, self._context.count_tokens, self._context.zone)

    def _describe_ended(self, request: ResetRequest) -> EndedGeneration:
        stores = self._stores
        current = self._current(request)
        view = stores.conversation.load_view(request.session)
        live = [
            checkpoint
            for checkpoint in stores.conversation.checkpoints(request.session)
            if checkpoint.generation == current.number and checkpoint.state == "live" and checkpoint.summary
        ]
        requests = stores.requests.list_open(request.session)
        helpers = stores.delegations.list_for_session(request.session, state="running")
        return EndedGeneration(
            request.session,
            current.scope,
            current.number,
            request.reason,
            self._context.clock(),
            current.messages,
            current.first_at,
            tuple(requests),
            len(stores.todos.list_todos(current.scope)),
            tuple(checkpoint.task for checkpoint in helpers),
            live[-1] if live else None,
            view.messages,
            late=request.late,
            resumes=request.resumes,
            sources=tuple(checkpoint.message_id for checkpoint in requests),
        )

    def _done(self, info: SessionInfo, archived: ArchiveEntry, note: str) -> ResetResult:
        previous = self._stores.generations.list_generations(info.key, newest=2)[0]
        unread = sum(
            session.unextracted
            for session in self._stores.conversation.list_unread_generations()
            if (session.key, session.generation) == (info.key, previous.number)
        )
        log.info("a conversation ended", session=info.key, generation=previous.number, reason=previous.end_reason)
        return ResetResult(previous, info.generation, archived, unread, note)
