"""Slash commands about conversations: `/reset`, `/sessions`, `/session`, and `/archive` for those that ended.

What always holds: `/archive` looks and changes nothing; only the scope of whoever types is shown (I10). Archives
are read off the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from assistant.core.archives import ArchiveEntry
from assistant.core.errors import UsageError
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, parse_session_name, session_kind, session_role, session_scope
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.sessions.listing import (
    HITS_PER_RESULT,
    ArchiveHit,
    SessionReader,
    SessionRow,
    can_resume,
    describe_generation,
    hits_in_log,
    reset_done_text,
    search_archived_records,
    sessions_markdown,
    visible_records,
)
from assistant.sessions.reset import ResetRequest
from assistant.sessions.scheduler import ResetScheduler
from assistant.store.archive.archive import StoredArchive
from assistant.store.script.people import ConversationRoutes
from assistant.store.search.history import StoredHistory

_RESET = "/reset [NAME] [--cancel]"
_SESSIONS = "/sessions [show NAME [N] | end NAME | resume NAME [N]]"
_SESSION = "/session [NAME]"
_GENERATIONS_EACH = 5


class SessionCommands:
    def __init__(
        self,
        resets: ResetScheduler,
        looking: SessionReader,
        conversation: Conversation,
        places: ConversationRoutes,
        terminal: str,
    ) -> None:
        """On the bridge `terminal` a dialog keeps by itself which conversation it is in."""
        self._resets = resets
        self._looking = looking
        self._conversation = conversation
        self._places = places
        self._terminal = terminal

    def entries(self) -> Mapping[str, Command]:
        return {
            "session": Command(
                _SESSION, "go to a thread of its own, or back to main; alone: where you are", self._session
            ),
            "sessions": Command(_SESSIONS, "list conversations, put one away, take an earlier one up", self._sessions),
            "reset": Command(_RESET, "begin afresh: learn, archive, hand over", self._reset),
        }

    # --------------------------------------------------------------------------------------------------------- changing

    async def _reset(self, call: CommandInvocation) -> str:
        words = call.arguments.split()
        cancel = "--cancel" in words
        names = [word for word in words if word != "--cancel"]
        if len(names) > 1 or any(name.startswith("-") for name in names):
            raise UsageError(f"Use {_RESET}. Nothing was changed.")
        session = self._looking.resolve_session(names[0] if names else call.session)
        if cancel:
            gone = self._resets.cancel_reset(session, call.now)
            return f"The reset of {session} is given up." if gone else f"No reset of {session} waits."
        return reset_done_text(await self._resets.reset_now(ResetRequest(session, "manual")))

    async def _sessions(self, call: CommandInvocation) -> str:
        action, *words = call.arguments.split() or ["list"]
        match action, words:
            case "list", []:
                return sessions_markdown(
                    list(self._looking.list_generations(_GENERATIONS_EACH)), self._looking.policies.zone
                )
            case "show", [name, *number]:
                return self._shown(name, _number(number))
            case "end", [name]:
                return await self._end(name)
            case "resume", [name, *number]:
                return await self._resume(name, _number(number))
        raise UsageError(f"Use {_SESSIONS}. Nothing was changed.")

    def _shown(self, name: str, number: int | None) -> str:
        one = self._looking.get_generation(name, number)
        known = one.generation
        made = [c for c in self._conversation.checkpoints(known.session) if c.generation == known.number]
        return describe_generation(one, self._looking.handover_note(known), made, self._looking.policies.zone)

    async def _end(self, name: str) -> str:
        session = self._looking.resolve_session(name)
        if session_kind(session) == "main":
            raise UsageError("main always goes on. Nothing was changed; `/reset` begins it afresh.")
        done = await self._resets.reset_now(ResetRequest(session, "end"))
        return f"{session} is put away. The next message in it begins a new conversation.\n\n{reset_done_text(done)}"

    async def _resume(self, name: str, number: int | None) -> str:
        session = self._looking.resolve_session(name)
        earlier = [one for one in self._looking.list_generations_of(session) if one.generation.ended_at is not None]
        chosen = _chosen(session, earlier, number)
        done = await self._resets.reset_now(ResetRequest(session, "resume", resumes=chosen))
        back = f": `/sessions resume {session} {done.ended.number}` goes back" if can_resume(done.ended) else ""
        return (
            f"{session} goes on from number {chosen}: what it showed last stands in view again. Number "
            f"{done.ended.number} ended for it and is kept{back}."
        )

    # -------------------------------------------------------------------------------------------------------- switching

    async def _session(self, call: CommandInvocation) -> str:
        if not call.arguments:
            return self._where(call)
        session = parse_session_name(call.arguments)
        if session_role(session) != "owner":
            raise UsageError(f"{session!r} is not a conversation of yours. Nothing was changed.")
        if call.bridge != self._terminal:
            self._places.choose_session(call.bridge, call.target, session, call.now)
        known = next((info for info in self._conversation.list_sessions() if info.key == session), None)
        if known is None:
            return f"You are in {session} now, which is new. `/session {MAIN_SESSION}` goes back."
        back = "" if session == MAIN_SESSION else f" `/session {MAIN_SESSION}` goes back."
        return f"You are in {session} now, {pluralize(known.view_messages, 'message')} in view.{back}"

    def _where(self, call: CommandInvocation) -> str:
        mine = sorted(info.key for info in self._conversation.list_sessions() if session_role(info.key) == "owner")
        others = [f"`{key}`" for key in mine if key != call.session]
        listed = f" There are also {', '.join(others)}." if others else ""
        return f"You are in {call.session}.{listed} `/session NAME` goes to another, or makes it."


def _number(words: Sequence[str]) -> int | None:
    """Raises `UsageError`."""
    if not words:
        return None
    if len(words) > 1 or not (words[0].isascii() and words[0].isdigit()):
        raise UsageError(f"{' '.join(words)!r} is not the number of a conversation. `/sessions` lists them.")
    return int(words[0])


def _chosen(session: str, earlier: Sequence[SessionRow], number: int | None) -> int:
    """The generation to go on from: the last one that ended, unless named. Raises `UsageError`."""
    numbers = [one.generation.number for one in earlier if can_resume(one.generation)]
    if not numbers:
        raise UsageError(f"{session} has no earlier conversation to take up. Nothing was changed.")
    if number is not None and number not in numbers:
        there = ", ".join(map(str, reversed(numbers)))
        raise UsageError(f"{session} has no earlier conversation {number}, only {there}. Nothing was changed.")
    return numbers[0] if number is None else number


ARCHIVE_USAGE = "/archive [list | show SESSION [GENERATION] | search TEXT]"
_MOST = 10
_SHOWN = 40
_EXCERPT = 200


class ArchiveCommands:
    def __init__(self, archive: StoredArchive, history: StoredHistory, zone: tzinfo) -> None:
        self._archive = archive
        self._history = history
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        return {"archive": Command(ARCHIVE_USAGE, "conversations that ended: list, read or search them", self._run)}

    async def _run(self, call: CommandInvocation) -> str:
        scope = session_scope(call.session)
        action, _, rest = call.arguments.partition(" ")
        match action, rest.strip():
            case (("" | "list"), ""):
                return self._list(await asyncio.to_thread(self._archive.list_archives, scope))
            case "show", wanted if wanted:
                return await self._show(wanted, scope)
            case "search", text if text:
                return await self._search(text, scope)
        raise UsageError(f"That is not understood. Nothing was changed; type `{ARCHIVE_USAGE}`.")

    def _list(self, found: Sequence[ArchiveEntry]) -> str:
        if not found:
            return "Nothing is archived yet."
        rows = [
            f"- `{one.session} {one.generation}` — {self._when(one.from_ts)} to {self._when(one.to_ts)}, "
            f"{pluralize(one.records, 'record')}, {one.url}{' (encrypted)' if one.encrypted else ''}"
            for one in found[-_SHOWN:]
        ]
        left = len(found) - len(rows)
        return "\n".join([*([f"{pluralize(left, 'older one')}: `assistant archive list`"] if left else []), *rows])

    async def _show(self, wanted: str, scope: str) -> str:
        """The end of it: all of it is too long to be read in a message."""
        session, _, number = wanted.rpartition(" ") if wanted.split()[-1].isdigit() else (wanted, "", "")
        of_session = [
            one for one in await asyncio.to_thread(self._archive.list_archives, scope) if one.session == session
        ]
        chosen = [one for one in of_session if not number or one.generation == int(number)]
        if not chosen:
            raise UsageError(f"{wanted!r} is not archived. Nothing was changed; `/archive list` shows what is.")
        one = chosen[-1]
        records = visible_records(await asyncio.to_thread(self._archive.read_records, one.session, one.generation))
        more = f"`assistant archive show {one.session} {one.generation}` prints all {len(records):,} messages."
        shown = [self._line(record) for record in records[-_MOST:]]
        return "\n".join([*shown, *([more] if len(records) > _MOST else [])])

    async def _search(self, text: str, scope: str) -> str:
        archive = self._archive
        hits = self._history.search(text, scope, limit=_MOST * HITS_PER_RESULT)
        found = hits_in_log(hits, await asyncio.to_thread(archive.list_archives, scope))
        for one in await asyncio.to_thread(archive.list_missing_from_log, scope):
            found += search_archived_records(
                await asyncio.to_thread(archive.read_records, one.session, one.generation), text
            )
        if not found:
            return "No archived message has these words."
        return "\n".join(self._found(one) for one in found[:_MOST])

    def _found(self, one: ArchiveHit) -> str:
        when = one.at.astimezone(self._zone)
        return f"- `{one.session} {one.generation}` {when:%Y-%m-%d %H:%M} {one.role} #{one.message_id}: {one.text}"

    def _line(self, record: LogRecord) -> str:
        words = " ".join(record.content.split())
        shown = words if len(words) <= _EXCERPT else f"{words[:_EXCERPT]}…"
        return f"- {self._when(record.ts)} {record.name or record.role} #{record.id}: {shown}"

    def _when(self, moment: datetime | None) -> str:
        return f"{moment.astimezone(self._zone):%Y-%m-%d %H:%M}" if moment else ""
