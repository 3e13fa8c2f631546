"""Memories as a person reads them (Markdown), and as programs do (JSON).

What always holds: stored words are data. On a line they are one JSON string, whole texts are blocks, so that
nothing that a memory says can pass for a line of the report. Each row has the reference by which the memory can be
named again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from assistant.core.calendar import format_local_time
from assistant.core.memories import (
    CorrectionResult,
    EntryWithMessages,
    ImportResult,
    MemoriesAsOf,
    Memory,
    MemoryCounts,
    MemoryHit,
    MemoryProvenance,
    MemoryState,
    RebuildResult,
)
from assistant.core.quoting import MEMORY_MARK, RECORD_TAG, quote_block, quote_text
from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex, pluralize
from assistant.memory.exchange import export_memory

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


def render_memory_hits(hits: Sequence[MemoryHit], zone: tzinfo) -> list[str]:
    lines = [render_memory_line(hit.memory, zone, hit.memory.superseded_by[:8]) for hit in hits]
    return lines or ["Nothing that is remembered has to do with that."]


def render_memories(memories: Sequence[MemoryState], zone: tzinfo) -> list[str]:
    lines = [render_memory_line(state.memory, zone, state.replaced_by) for state in memories]
    return lines or ["Nothing is remembered yet."]


def left_out_note(older: int) -> str:
    return f"Left out: {pluralize(older, 'older one')}; --limit shows more."


def render_as_of(then: MemoriesAsOf, zone: tzinfo) -> list[str]:
    lines = [render_memory_line(state.memory, zone, state.replaced_by) for state in then.memories]
    return [as_of_heading(then, zone), *(lines or [as_of_empty_note(then, zone)])]


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
    return lines if entry.sources else [*lines, "No message in your data says it."]


def record_text(record: LogRecord) -> str:
    """What was said, exactly."""
    return record.content or (_FORGOTTEN if not record.salt.strip() else "")


def render_correction(done: CorrectionResult) -> list[str]:
    lines = [
        f"Corrected: [{done.previous.reference}] is out of date. Current now: [{done.current.reference}] "
        f"{quote_text(first_words(done.current.text))}"
    ]
    return [*lines, *filter(None, [done.pending_reason])]


def render_memory_counts(counts: MemoryCounts, zone: tzinfo) -> list[str]:
    kinds = ", ".join(pluralize(number, kind) for kind, number in counts.kinds.items())
    size = "" if counts.storage.size is None else f", memory.db {counts.storage.size:,} bytes"
    slept = counts.last_sleep
    last = "never" if slept is None else f"{format_local_time(slept.started_at, zone)} ({slept.trigger}, {slept.state})"
    return [
        f"- current memories: {counts.current}" + (f" ({kinds})" if kinds else ""),
        f"- former memories: {counts.superseded}",
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
