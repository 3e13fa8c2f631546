"""Memories as a person reads them, in Markdown and in JSON. Pure.

What always holds: stored words are data. On a line they stand as one JSON string, whole texts in blocks, so that
nothing a memory says can pass for a line of the report; each row has the reference by which it can be named again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from assistant.context.quote import RECORD
from assistant.core.calendar import format_local_time
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
from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex, pluralize
from assistant.core.tool_results import quote_block, quote_text
from assistant.memory.exchange import memory_out
from assistant.runtime.remembering import MARK

_LONGEST = 300
_RECALLED = lazy_regex(r"^- \[([0-9a-f]{8}|entry \d+)\] ", re.MULTILINE)
_FORGOTTEN = "(forgotten)"


def first_words(text: str, most: int = _LONGEST) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"


def recalled_in(volatile: str) -> list[str]:
    """References of what was brought to a turn unasked, from its volatile block."""
    _, found, block_of_it = volatile.partition(f"<{RECORD}>\n{MARK}")
    return list(dict.fromkeys(_RECALLED.findall(block_of_it.partition(f"</{RECORD}>")[0]))) if found else []


# ------------------------------------------------------------------------------------------------------------- Markdown


def memory_line(memory: Memory, zone: tzinfo, by: str = "") -> str:
    until = f", until {_day(memory.until, zone)}" if memory.until is not None else ""
    instead = f", then [{by}]" if by else ""
    head = f"- [{memory.reference}] {_day(memory.said_at, zone)}{until}{instead}, {memory.kind}"
    return f"{head}: {quote_text(first_words(memory.text))}"


def found_lines(found: Sequence[MemoryHit], zone: tzinfo) -> list[str]:
    lines = [memory_line(one.memory, zone, one.memory.superseded_by[:8]) for one in found]
    return lines or ["Nothing that is remembered has to do with that."]


def held_lines(held: MemoryList, zone: tzinfo, most: int) -> list[str]:
    """What holds now, the newest first."""
    current = [one for one in reversed(held.known) if one.memory.is_current]
    lines = [memory_line(one.memory, zone) for one in current[:most]] or ["Nothing is remembered yet."]
    older = len(current) - most
    more = [f"- … and {pluralize(older, 'older one')}: `assistant memory list` has all"] if older > 0 else []
    return [*lines, *more, *_noted(held.note)]


def left_out(older: int) -> str:
    return f"Left out: {pluralize(older, 'older one')}; --limit shows more."


def then_lines(then: MemoriesAsOf, zone: tzinfo) -> list[str]:
    lines = [memory_line(one.memory, zone, one.by) for one in then.known] or [then_empty(then, zone)]
    more = (
        [f"- … and {pluralize(then.left_out, 'older one')}: `assistant memory as-of` has all"] if then.left_out else []
    )
    return [then_head(then, zone), *lines, *more]


def then_head(then: MemoriesAsOf, zone: tzinfo) -> str:
    return f"As it was known on {format_local_time(then.at, zone)}:"


def then_empty(then: MemoriesAsOf, zone: tzinfo) -> str:
    if then.first is None:
        return "Nothing is remembered yet."
    if then.at < then.first:
        return f"Nothing was known yet: what is remembered was noted from {format_local_time(then.first, zone)} on."
    return f"Nothing that was known then {'has to do with that' if then.searched else 'is left'}."


def known_lines(known: MemoryState, zone: tzinfo) -> list[str]:
    memory = known.memory
    parts = [memory.kind, f"said {format_local_time(memory.said_at, zone)}", f"importance {memory.importance:.2f}"]
    if memory.until is not None:
        parts.append(f"until {format_local_time(memory.until, zone)}")
    if known.by:
        parts.append(f"then [{known.by}]")
    if not memory.id:
        parts.append("no memory was made of it yet")
    entries = ", ".join(str(one.id) for one in known.entries)
    made = [f"Journal entries: {entries}. `/why {known.reference}` shows what was said."] if memory.id else []
    return [f"[{known.reference}] {', '.join(parts)}", quote_block(memory.text), *made]


def chain_lines(chain: MemoryProvenance, zone: tzinfo) -> list[str]:
    lines = known_lines(chain.known, zone)[:2]
    for said in chain.said:
        lines += ["", *_said_lines(said, zone)]
    if len(chain.versions) > 1:
        lines += ["", "What it said over time:"]
        lines += [
            f"- {format_local_time(one.at, zone)}: {quote_text(first_words(one.after))}" for one in chain.versions
        ]
    return [*lines, *_noted(chain.note)]


def _said_lines(said: EntryWithMessages, zone: tzinfo) -> list[str]:
    entry = said.entry
    head = f"From entry {entry.id} ({entry.source_type}, {format_local_time(entry.timestamp, zone)}):"
    lines = [f"{head} {quote_text(first_words(entry.content))}"]
    for record in said.records:
        name = f" {quote_text(record.name)}" if record.name else ""
        when = format_local_time(record.ts, zone)
        lines += [
            f"#{record.id} {when} {record.role}{name}, session {quote_text(record.session)}:",
            quote_block(words(record)),
        ]
    lines += [f"#{number}: not in the log" for number in said.missing]
    return lines if entry.sources else [*lines, "No message of this home says it."]


def words(record: LogRecord) -> str:
    """What was said, exactly."""
    return record.content or (_FORGOTTEN if not record.salt.strip() else "")


def corrected_lines(done: CorrectionResult) -> list[str]:
    lines = [
        f"Corrected: [{done.former.reference}] no longer holds. Since now: [{done.now.reference}] "
        f"{quote_text(first_words(done.now.text))}"
    ]
    return [*lines, *_noted(done.waiting)]


def counts_lines(counts: MemoryCounts, zone: tzinfo) -> list[str]:
    kinds = ", ".join(pluralize(number, kind) for kind, number in counts.kinds.items())
    size = "" if counts.place.size is None else f", memory.db {counts.place.size:,} bytes"
    slept = counts.slept
    last = "never" if slept is None else f"{format_local_time(slept.started_at, zone)} ({slept.trigger}, {slept.state})"
    return [
        f"- memories that hold: {counts.current}" + (f" ({kinds})" if kinds else ""),
        f"- memories that held before: {counts.former}",
        f"- journal entries without a memory yet: {counts.pending}",
        f"- changes decided and not made yet: {counts.planned}",
        f"- last sleep: {last}",
        f"- store: {counts.place.store}, embedder {counts.place.embedder}{size}",
        *(f"- {note}" for note in _noted(counts.note)),
    ]


def imported_line(done: ImportResult) -> str:
    left = f" {pluralize(done.left_out, 'summary', 'summaries')} left out." if done.left_out else ""
    night = " The next sleep makes memories of them." if done.new else ""
    return f"Imported {pluralize(done.new, 'entry', 'entries')}; already there: {done.there}.{left}{night}"


def rebuilt_lines(done: RebuildResult, *, from_log: bool) -> list[str]:
    learned = pluralize(done.learned, "new journal entry", "new journal entries")
    read = [f"Read {pluralize(done.read, 'message')} again: {learned}."] if from_log else []
    changed = pluralize(done.changed, "memory", "memories")
    return [*read, f"Semantic memory is what the journal says; changed: {changed}.", *done.notes]


# ----------------------------------------------------------------------------------------------------------------- JSON


def found_json(found: Sequence[MemoryHit]) -> list[dict[str, Any]]:
    return [
        {
            **memory_out(MemoryState(one.memory, one.memory.superseded_by[:8])), "score": round(one.score, 4),
            "sources": list(one.sources),
        }
        for one in found
    ]  # fmt: skip


def then_json(then: MemoriesAsOf) -> dict[str, Any]:
    first = then.first.isoformat() if then.first else None
    return {"as_of": then.at.isoformat(), "first": first, "known": [memory_out(one) for one in then.known]}


def chain_json(chain: MemoryProvenance) -> dict[str, Any]:
    return {
        **memory_out(chain.known),
        "said": [
            {
                "entry": one.entry.id, "source_type": one.entry.source_type, "at": one.entry.timestamp.isoformat(),
                "text": one.entry.content, "missing": list(one.missing),
                "messages": [
                    {
                        "id": record.id, "at": record.ts.isoformat(), "session": record.session, "role": record.role,
                        "text": record.content,
                    }
                    for record in one.records
                ],
            }
            for one in chain.said
        ],
        "versions": [
            {"at": one.at.isoformat(), "action": one.action, "before": one.before, "after": one.after}
            for one in chain.versions
        ],
        "note": chain.note,
    }  # fmt: skip


def corrected_json(done: CorrectionResult) -> dict[str, Any]:
    return {
        "former": done.former.reference, "id": done.now.reference, "memory_id": done.now.id or None,
        "text": done.now.text, "waiting": done.waiting or None,
    }  # fmt: skip


def counts_json(counts: MemoryCounts) -> dict[str, Any]:
    slept = counts.slept
    return {
        "current": counts.current, "former": counts.former, "kinds": dict(counts.kinds), "pending": counts.pending,
        "planned": counts.planned, "last_sleep": slept.started_at.isoformat() if slept else None,
        "store": counts.place.store, "embedder": counts.place.embedder, "bytes": counts.place.size, "note": counts.note,
    }  # fmt: skip


def imported_json(done: ImportResult) -> dict[str, Any]:
    return {"new": done.new, "there": done.there, "left_out": done.left_out}


def rebuilt_json(done: RebuildResult) -> dict[str, Any]:
    return {"changed": done.changed, "read": done.read, "learned": done.learned, "notes": list(done.notes)}


def _noted(note: str) -> list[str]:
    return [note] if note else []


def _day(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).date().isoformat()
