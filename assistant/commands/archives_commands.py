"""The slash command about archives: what is archived, what was said there, what has certain words.

What always holds: it looks and changes nothing; only the scope of who types is shown (I10). Archives are read off the
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from assistant.core.archives import ArchiveEntry, ArchivePort
from assistant.core.errors import UsageError
from assistant.core.ports import HistoryPort
from assistant.core.records import LogRecord
from assistant.core.sessions import session_scope
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.text import pluralize
from assistant.sessions.archive_search import (
    HITS_PER_RESULT,
    ArchiveHit,
    hits_in_log,
    search_archived_records,
    visible_records,
)

USAGE = "/archive [list | show SESSION [GENERATION] | search TEXT]"
_MOST = 10
_SHOWN = 40
_EXCERPT = 200


class ArchiveCommands:
    def __init__(self, archive: ArchivePort, history: HistoryPort, zone: tzinfo) -> None:
        self._archive = archive
        self._history = history
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        return {"archive": Command(USAGE, "conversations that ended: list, read or search them", self._run)}

    async def _run(self, call: CommandInvocation) -> str:
        scope = session_scope(call.session)
        action, _, rest = call.rest.partition(" ")
        match action, rest.strip():
            case (("" | "list"), ""):
                return self._list(await asyncio.to_thread(self._archive.listed, scope))
            case "show", wanted if wanted:
                return await self._show(wanted, scope)
            case "search", text if text:
                return await self._search(text, scope)
        raise UsageError(f"That is not understood. Nothing was changed; type `{USAGE}`.")

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
        of_session = [one for one in await asyncio.to_thread(self._archive.listed, scope) if one.session == session]
        chosen = [one for one in of_session if not number or one.generation == int(number)]
        if not chosen:
            raise UsageError(f"{wanted!r} is not archived. Nothing was changed; `/archive list` shows what is.")
        one = chosen[-1]
        records = visible_records(await asyncio.to_thread(self._archive.read, one.session, one.generation))
        more = f"`assistant archive show {one.session} {one.generation}` prints all {len(records):,} messages."
        shown = [self._line(record) for record in records[-_MOST:]]
        return "\n".join([*shown, *([more] if len(records) > _MOST else [])])

    async def _search(self, text: str, scope: str) -> str:
        archive = self._archive
        hits = self._history.search(text, scope, limit=_MOST * HITS_PER_RESULT)
        found = hits_in_log(hits, await asyncio.to_thread(archive.listed, scope))
        for one in await asyncio.to_thread(archive.lost, scope):
            found += search_archived_records(await asyncio.to_thread(archive.read, one.session, one.generation), text)
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
