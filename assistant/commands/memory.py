"""The slash commands about memories, `/memory` and `/why`, and memories as a person reads them: Markdown, or JSON
where `--json` follows the action.

What always holds: stored words are data. On a line they are one JSON string, whole texts are blocks, so that
nothing that a memory says can pass for a line of the report. Each row has the reference by which the memory can be
named again. The renderers are pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from assistant.core.calendar import format_local_time
from assistant.core.errors import UsageError
from assistant.core.memories import (
    CorrectionResult,
    EntryWithMessages,
    ImportResult,
    MemoriesAsOf,
    Memory,
    MemoryCounts,
    MemoryHit,
    MemoryList,
    MemoryProvenance,
    MemoryState,
    RebuildResult,
)
from assistant.core.quoting import RECORD_TAG, quote_block, quote_text
from assistant.core.records import LogRecord
from assistant.core.sessions import session_scope
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Conversation
from assistant.core.text import lazy_regex, pluralize
from assistant.memory.as_of import split_as_of
from assistant.memory.exchange import export_memory
from assistant.memory.service import MemoryService
from assistant.runtime.recall import MEMORY_MARK

MEMORY_USAGE = (
    "/memory [TEXT | list | as-of DATE [TEXT] | show REF | edit REF TEXT | import FILE | rebuild [--from-log] | stats]"
)
WHY_USAGE = "/why [REF]"
MAX_IMPORT_BYTES = 64 * 1024 * 1024
_LISTED = 50
_FOUND = 10
_FIRST = lazy_regex(r"((?:entry|memory)[ :]+#?\w+|\S+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_HOW = "Use {usage}. A memory is named by the first digits of its id, or as `entry 12`. Nothing was changed."


class MemoryCommandGroup:
    def __init__(self, memory: MemoryService, conversation: Conversation, zone: tzinfo) -> None:
        self._memory = memory
        self._conversation = conversation
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        return {
            "memory": Command(MEMORY_USAGE, "what is remembered: look, put right, make again", self._memory_asked),
            "why": Command(WHY_USAGE, "where a memory, or what came to mind last, is from", self._why_asked),
        }

    async def _memory_asked(self, call: CommandInvocation) -> str:
        return await self.run_memory(call.arguments, call.session, call.now)

    async def _why_asked(self, call: CommandInvocation) -> str:
        return await self.run_why(call.arguments, call.session)

    async def run_memory(self, rest: str, session: str, now: datetime) -> str:
        """The words after `/memory`. Raises `UsageError`, `MemoryUnavailable`, `StoreError`."""
        action, _, words = rest.partition(" ")
        flag, _, after = words.strip().partition(" ")
        as_json = flag == "--json"
        words = after.strip() if as_json else words.strip()
        scope = session_scope(session)
        match action:
            case "" | "stats" if not words:
                return "\n".join(render_memory_counts(await self._memory.stats(scope), self._zone))
            case "list" if not words:
                return "\n".join(render_current_memories(await self._memory.list_all(scope), self._zone, _LISTED))
            case "show" if words:
                return "\n".join(render_memory(await self._memory.show(words, scope), self._zone))
            case "why" if words:
                return await self.run_why(words, session)
            case "edit":
                return await self._edit(words, session, now, as_json=as_json)
            case "import" if words:
                done = self._memory.import_text(_file(Path(words)), scope, session, now)
                return _json(import_json(done)) if as_json else render_import(done)
            case "rebuild" if words in ("", "--from-log"):
                return await self._rebuild(now, from_log=bool(words), as_json=as_json)
            case "as-of" if words:
                at, text = split_as_of(words, now, self._zone)
                return self._then(self._memory.list_as_of(text, scope, at, limit=_LISTED), as_json=as_json)
            case "search" if words:
                return self._search(words, scope)
            case "show" | "why" | "import" | "rebuild" | "search" | "as-of":
                raise UsageError(_HOW.format(usage=MEMORY_USAGE))
            case _:
                return self._search(rest, scope)

    async def run_why(self, rest: str, session: str) -> str:
        """The words after `/why`: a reference, or nothing for what came to mind in the last turn. Raises `UsageError`,
        `StoreError`."""
        scope = session_scope(session)
        references = [rest] if rest else recalled_references(self._conversation.last_volatile(session))
        if not references:
            raise UsageError(f"Nothing was recalled for the last answer. {_HOW.format(usage=WHY_USAGE)}")
        told = []
        for reference in references:
            try:
                told.append("\n".join(render_provenance(await self._memory.why(reference, scope), self._zone)))
            except UsageError as error:
                if rest:
                    raise
                told.append(str(error))
        return "\n\n".join(told)

    def _search(self, words: str, scope: str) -> str:
        return "\n".join(render_memory_hits(self._memory.search(words, scope, limit=_FOUND), self._zone))

    def _then(self, then: MemoriesAsOf, *, as_json: bool) -> str:
        return _json(as_of_json(then)) if as_json else "\n".join(render_as_of(then, self._zone))

    async def _edit(self, words: str, session: str, now: datetime, *, as_json: bool) -> str:
        found = _FIRST.fullmatch(words)
        if found is None or not found[2].strip():
            raise UsageError(_HOW.format(usage="/memory edit REF TEXT"))
        done = await self._memory.correct(found[1], found[2], session_scope(session), session, now)
        return _json(correction_json(done)) if as_json else "\n".join(render_correction(done))

    async def _rebuild(self, now: datetime, *, from_log: bool, as_json: bool) -> str:
        done = await self._memory.rebuild(now, from_log=from_log)
        return _json(rebuild_json(done)) if as_json else "\n".join(render_rebuild(done, from_log=from_log))


def _file(path: Path) -> str:
    """What a file has. Raises `UsageError`."""
    try:
        if path.stat().st_size > MAX_IMPORT_BYTES:
            raise UsageError(
                f"{path.name} has more than {MAX_IMPORT_BYTES // 2**20} MB. Nothing was imported; split it."
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name} is not UTF-8 (line {line}). Nothing was imported.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}. Nothing was imported.") from None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_LONGEST = 300
_RECALLED = lazy_regex(r"^- \[([0-9a-f]{8}|entry \d+)\] ", re.MULTILINE)
_FORGOTTEN = "(forgotten)"


def first_words(text: str, most: int = _LONGEST) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"


def recalled_references(volatile: str) -> list[str]:
    """References of what was brought to a turn unasked, from its volatile block."""
    _, found, block_of_it = volatile.partition(f"<{RECORD_TAG}>\n{MEMORY_MARK}")
    return list(dict.fromkeys(_RECALLED.findall(block_of_it.partition(f"</{RECORD_TAG}>")[0]))) if found else []


# ------------------------------------------------------------------------------------------------------------- Markdown


def render_memory_line(memory: Memory, zone: tzinfo, by: str = "") -> str:
    until = f", until {_day(memory.until, zone)}" if memory.until is not None else ""
    instead = f", then [{by}]" if by else ""
    head = f"- [{memory.reference}] {_day(memory.said_at, zone)}{until}{instead}, {memory.kind}"
    return f"{head}: {quote_text(first_words(memory.text))}"


def render_memory_hits(found: Sequence[MemoryHit], zone: tzinfo) -> list[str]:
    lines = [render_memory_line(one.memory, zone, one.memory.superseded_by[:8]) for one in found]
    return lines or ["Nothing that is remembered has to do with that."]


def render_current_memories(held: MemoryList, zone: tzinfo, most: int) -> list[str]:
    """What holds now, the newest first."""
    current = [one for one in reversed(held.memories) if one.memory.is_current]
    lines = [render_memory_line(one.memory, zone) for one in current[:most]] or ["Nothing is remembered yet."]
    older = len(current) - most
    more = [f"- … and {pluralize(older, 'older one')}: `assistant memory list` has all"] if older > 0 else []
    return [*lines, *more, *filter(None, [held.note])]


def left_out_note(older: int) -> str:
    return f"Left out: {pluralize(older, 'older one')}; --limit shows more."


def render_as_of(then: MemoriesAsOf, zone: tzinfo) -> list[str]:
    lines = [render_memory_line(one.memory, zone, one.replaced_by) for one in then.memories] or [
        as_of_empty_note(then, zone)
    ]
    more = (
        [f"- … and {pluralize(then.left_out, 'older one')}: `assistant memory as-of` has all"] if then.left_out else []
    )
    return [as_of_heading(then, zone), *lines, *more]


def as_of_heading(then: MemoriesAsOf, zone: tzinfo) -> str:
    return f"As it was known on {format_local_time(then.at, zone)}:"


def as_of_empty_note(then: MemoriesAsOf, zone: tzinfo) -> str:
    if then.first_noted_at is None:
        return "Nothing is remembered yet."
    if then.at < then.first_noted_at:
        return (
            f"Nothing was known yet: what is remembered was noted from "
            f"{format_local_time(then.first_noted_at, zone)} on."
        )
    return f"Nothing that was known then {'has to do with that' if then.searched else 'is left'}."


def render_memory(known: MemoryState, zone: tzinfo) -> list[str]:
    memory = known.memory
    parts = [memory.kind, f"said {format_local_time(memory.said_at, zone)}", f"importance {memory.importance:.2f}"]
    if memory.until is not None:
        parts.append(f"until {format_local_time(memory.until, zone)}")
    if known.replaced_by:
        parts.append(f"then [{known.replaced_by}]")
    if not memory.id:
        parts.append("no memory was made of it yet")
    entries = ", ".join(str(one.id) for one in known.entries)
    made = [f"Journal entries: {entries}. `/why {known.reference}` shows what was said."] if memory.id else []
    return [f"[{known.reference}] {', '.join(parts)}", quote_block(memory.text), *made]


def render_provenance(chain: MemoryProvenance, zone: tzinfo) -> list[str]:
    lines = render_memory(chain.memory_state, zone)[:2]
    for said in chain.entries:
        lines += ["", *_said_lines(said, zone)]
    if len(chain.versions) > 1:
        lines += ["", "What it said over time:"]
        lines += [
            f"- {format_local_time(one.at, zone)}: {quote_text(first_words(one.after))}" for one in chain.versions
        ]
    return [*lines, *filter(None, [chain.note])]


def _said_lines(said: EntryWithMessages, zone: tzinfo) -> list[str]:
    entry = said.entry
    head = f"From entry {entry.id} ({entry.source_type}, {format_local_time(entry.timestamp, zone)}):"
    lines = [f"{head} {quote_text(first_words(entry.content))}"]
    for record in said.records:
        name = f" {quote_text(record.name)}" if record.name else ""
        when = format_local_time(record.ts, zone)
        lines += [
            f"#{record.id} {when} {record.role}{name}, session {quote_text(record.session)}:",
            quote_block(record_text(record)),
        ]
    lines += [f"#{number}: not in the log" for number in said.missing_ids]
    return lines if entry.sources else [*lines, "No message of this home says it."]


def record_text(record: LogRecord) -> str:
    """What was said, exactly."""
    return record.content or (_FORGOTTEN if not record.salt.strip() else "")


def render_correction(done: CorrectionResult) -> list[str]:
    lines = [
        f"Corrected: [{done.previous.reference}] no longer holds. Since now: [{done.current.reference}] "
        f"{quote_text(first_words(done.current.text))}"
    ]
    return [*lines, *filter(None, [done.pending_reason])]


def render_memory_counts(counts: MemoryCounts, zone: tzinfo) -> list[str]:
    kinds = ", ".join(pluralize(number, kind) for kind, number in counts.kinds.items())
    size = "" if counts.storage.size is None else f", memory.db {counts.storage.size:,} bytes"
    slept = counts.last_sleep
    last = "never" if slept is None else f"{format_local_time(slept.started_at, zone)} ({slept.trigger}, {slept.state})"
    return [
        f"- memories that hold: {counts.current}" + (f" ({kinds})" if kinds else ""),
        f"- memories that held before: {counts.superseded}",
        f"- journal entries without a memory yet: {counts.pending}",
        f"- changes decided and not made yet: {counts.planned}",
        f"- last sleep: {last}",
        f"- store: {counts.storage.store}, embedder {counts.storage.embedder}{size}",
        *(f"- {note}" for note in filter(None, [counts.note])),
    ]


def render_import(done: ImportResult) -> str:
    left = f" {pluralize(done.left_out, 'summary', 'summaries')} left out." if done.left_out else ""
    night = " The next sleep makes memories of them." if done.new else ""
    return f"Imported {pluralize(done.new, 'entry', 'entries')}; already there: {done.already_present}.{left}{night}"


def render_rebuild(done: RebuildResult, *, from_log: bool) -> list[str]:
    learned = pluralize(done.learned, "new journal entry", "new journal entries")
    read = [f"Read {pluralize(done.read, 'message')} again: {learned}."] if from_log else []
    changed = pluralize(done.changed, "memory", "memories")
    return [*read, f"Semantic memory is what the journal says; changed: {changed}.", *done.notes]


# ----------------------------------------------------------------------------------------------------------------- JSON


def memory_hits_json(found: Sequence[MemoryHit]) -> list[dict[str, Any]]:
    return [
        {
            **export_memory(MemoryState(one.memory, one.memory.superseded_by[:8])),
            "score": round(one.score, 4),
            "sources": list(one.sources),
        }
        for one in found
    ]


def as_of_json(then: MemoriesAsOf) -> dict[str, Any]:
    first = then.first_noted_at.isoformat() if then.first_noted_at else None
    return {"as_of": then.at.isoformat(), "first": first, "known": [export_memory(one) for one in then.memories]}


def provenance_json(chain: MemoryProvenance) -> dict[str, Any]:
    return {
        **export_memory(chain.memory_state),
        "said": [
            {
                "entry": one.entry.id,
                "source_type": one.entry.source_type,
                "at": one.entry.timestamp.isoformat(),
                "text": one.entry.content,
                "missing": list(one.missing_ids),
                "messages": [
                    {
                        "id": record.id,
                        "at": record.ts.isoformat(),
                        "session": record.session,
                        "role": record.role,
                        "text": record.content,
                    }
                    for record in one.records
                ],
            }
            for one in chain.entries
        ],
        "versions": [
            {"at": one.at.isoformat(), "action": one.action, "before": one.before, "after": one.after}
            for one in chain.versions
        ],
        "note": chain.note,
    }


def correction_json(done: CorrectionResult) -> dict[str, Any]:
    return {
        "former": done.previous.reference,
        "id": done.current.reference,
        "memory_id": done.current.id or None,
        "text": done.current.text,
        "waiting": done.pending_reason or None,
    }


def memory_counts_json(counts: MemoryCounts) -> dict[str, Any]:
    slept = counts.last_sleep
    return {
        "current": counts.current,
        "former": counts.superseded,
        "kinds": dict(counts.kinds),
        "pending": counts.pending,
        "planned": counts.planned,
        "last_sleep": slept.started_at.isoformat() if slept else None,
        "store": counts.storage.store,
        "embedder": counts.storage.embedder,
        "bytes": counts.storage.size,
        "note": counts.note,
    }


def import_json(done: ImportResult) -> dict[str, Any]:
    return {"new": done.new, "there": done.already_present, "left_out": done.left_out}


def rebuild_json(done: RebuildResult) -> dict[str, Any]:
    return {"changed": done.changed, "read": done.read, "learned": done.learned, "notes": list(done.notes)}


def _day(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).date().isoformat()
