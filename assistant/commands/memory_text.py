"""Memories as a person reads them (Markdown), and as programs do (JSON).

What always holds: stored words are data. On a line they are one JSON string, whole texts are blocks, so that
nothing that a memory says can pass for a line of the report. Each row has the reference by which the memory can be
named again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Annotated, Any

from pydantic import AfterValidator, AliasPath, BeforeValidator, Field

from assistant.commands.items import Item, TextOrNull
from assistant.core.calendar import format_local_time
from assistant.core.memories import (
    SLEEP_KINDS,
    CorrectionResult,
    EntryWithMessages,
    ImportResult,
    MemoriesAsOf,
    Memory,
    MemoryCounts,
    MemoryHit,
    MemoryProvenance,
    MemorySearchExplanation,
    MemoryState,
    MemoryVersion,
    RebuildResult,
    SourceType,
)
from assistant.core.quoting import quote_block, quote_text
from assistant.core.text import pluralize, shorten_line

_LONGEST = 300
_LEAST_SHOWN = 0.005
NOTHING_REMEMBERED = "Nothing is remembered yet. What you tell becomes memories at night; `/sleep` makes them now."
_FORGOTTEN = "(forgotten)"
# How a journal entry came to be, for people.
_SOURCES: Mapping[SourceType, str] = {
    "extraction": "read in the conversation",
    "compaction": "read when messages were summarised",
    "context_synthesis": "made from a whole stretch of the conversation",
    "tool": "noted by the model",
    "reset": "read when a conversation ended",
    "import": "imported",
    "correction": "corrected by you",
}

# ------------------------------------------------------------------------------------------------------------- Markdown


def _memory_line(memory: Memory, zone: tzinfo, replaced_by: str) -> str:
    until = f", until {_day(memory.until, zone)}" if memory.until is not None else ""
    instead = f", then [{replaced_by}]" if replaced_by else ""
    head = f"- [{memory.reference}] {_day(memory.said_at, zone)}{until}{instead}, {memory.kind}"
    return f"{head}: {_first_words(memory.text)}"


def _day(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).date().isoformat()


def _first_words(text: str) -> str:
    """The beginning of a text, quoted on one line."""
    return quote_text(shorten_line(text, _LONGEST))


def render_memory_hits(hits: Sequence[MemoryHit], zone: tzinfo) -> str:
    lines = [_memory_line(hit.memory, zone, hit.memory.superseded_by[:8]) for hit in hits]
    return "\n".join(lines) or "No memory matches that. `assistant log --grep WORDS` searches what was said."


def render_memory_search(found: Sequence[MemoryHit] | MemorySearchExplanation, zone: tzinfo) -> str:
    """Return one line a memory; an explanation has the words searched before, and each hit's score."""
    if not isinstance(found, MemorySearchExplanation):
        return render_memory_hits(found, zone)
    words = [f"{word} (also {', '.join(like)})" if like else word for word, like in found.words.items()]
    stages = [
        f"Words: {'; '.join(words) or 'none that tell anything'}.",
        f"Asks for: {', '.join(found.asks_for) or 'nothing in particular'}.",
        f"Compared: {pluralize(found.by_words, 'part')} of entries with these words, and {found.by_meaning:,} for their"
        f" meaning alone, of {pluralize(found.entries, 'entry', 'entries')} in the journal.",
        "",
    ]
    if not found.hits:
        return "\n".join([*stages, render_memory_hits(found.hits, zone)])
    lines = [f"{render_memory_hits([hit], zone)}\n  {_score(hit)}" for hit in found.hits]
    return "\n".join([*stages, *lines])


def _score(hit: MemoryHit) -> str:
    """A score and what it is made of, the largest first."""
    rest = hit.score - sum(hit.parts.values())
    parts = {**hit.parts, "age, end or time": rest}
    shown = [(name, worth) for name, worth in parts.items() if abs(worth) >= _LEAST_SHOWN]
    told = ", ".join(f"{name} {worth:+.2f}" for name, worth in sorted(shown, key=lambda part: -abs(part[1])))
    return f"{hit.score:.2f} = {told}"


def render_memories(memories: Sequence[MemoryState], zone: tzinfo) -> str:
    return "\n".join(_memory_line(state.memory, zone, state.replaced_by) for state in memories)


def left_out_note(older: int) -> str:
    return f"Left out: {pluralize(older, 'older one')}; --limit shows more." if older else ""


def render_as_of(then: MemoriesAsOf, zone: tzinfo) -> str:
    lines = render_memories(then.memories, zone) or _as_of_empty_note(then, zone)
    return f"As it was known on {format_local_time(then.at, zone)}:\n{lines}"


def _as_of_empty_note(then: MemoriesAsOf, zone: tzinfo) -> str:
    if then.first_noted_at is None:
        return NOTHING_REMEMBERED
    if then.at < then.first_noted_at:
        first = format_local_time(then.first_noted_at, zone)
        return f"Nothing was known yet: what is remembered was noted from {first} on."
    return f"Nothing that was known then {'matches that' if then.searched else 'is left'}."


def render_memory(state: MemoryState, zone: tzinfo) -> str:
    """Return a memory with its journal entries, for `show`."""
    entries = ", ".join(str(entry.id) for entry in state.entries)
    made_of = f"\nJournal entries: {entries}. `/why {state.reference}` shows what was said." if state.memory.id else ""
    return f"{_memory_block(state, zone)}{made_of}"


def _memory_block(state: MemoryState, zone: tzinfo) -> str:
    memory = state.memory
    parts = [memory.kind, f"said {format_local_time(memory.said_at, zone)}", f"importance {memory.importance:.2f}"]
    if memory.until is not None:
        parts.append(f"until {format_local_time(memory.until, zone)}")
    if state.replaced_by:
        parts.append(f"then [{state.replaced_by}]")
    if not memory.id:
        parts.append("no memory was made of it yet")
    return f"[{state.reference}] {', '.join(parts)}\n{quote_block(memory.text)}"


def render_provenance(chain: MemoryProvenance, zone: tzinfo) -> str:
    """Return a memory with the messages it was made of, then its versions, for `why`."""
    lines = [_memory_block(chain, zone)]
    for said in chain.said:
        lines += ["", *_said_lines(said, zone)]
    if len(chain.versions) > 1:
        lines += ["", "What it said over time:"]
        lines += [f"- {format_local_time(v.at, zone)}: {_first_words(v.after)}" for v in chain.versions]
    return "\n".join([*lines, *filter(None, [chain.note])])


def _said_lines(said: EntryWithMessages, zone: tzinfo) -> list[str]:
    entry = said.entry
    head = f"From entry {entry.id} ({_SOURCES[entry.source_type]}, {format_local_time(entry.timestamp, zone)}):"
    lines = [f"{head} {_first_words(entry.content)}"]
    for record in said.records:
        name = f" {quote_text(record.name)}" if record.name else ""
        when = format_local_time(record.ts, zone)
        lines += [
            f"#{record.id} {when} {record.role}{name}, conversation {quote_text(record.session)}:",
            quote_block(record.content or (_FORGOTTEN if not record.salt.strip() else "")),
        ]
    lines += [f"#{number}: not in the log" for number in said.missing_ids]
    return lines if entry.sources else [*lines, "No message in your data says it."]


def render_correction(done: CorrectionResult) -> str:
    line = (
        f"Corrected: [{done.previous.reference}] is out of date. Current now: [{done.current.reference}] "
        f"{_first_words(done.current.text)}"
    )
    return "\n".join(filter(None, [line, done.pending_reason]))


def render_memory_counts(counts: MemoryCounts, zone: tzinfo) -> str:
    """Return the counts, the last sleep and the store's size (bytes) as a list."""
    kinds = ", ".join(pluralize(number, kind) for kind, number in counts.kinds.items())
    size = "" if counts.storage.size is None else f", memory.db {counts.storage.size:,} bytes"
    slept = counts.last_sleep
    kind = "" if slept is None else SLEEP_KINDS.get(slept.trigger, slept.trigger)
    last = "never" if slept is None else f"{format_local_time(slept.started_at, zone)} ({kind}, {slept.state})"
    lines = [
        f"current memories: {counts.current}" + (f" ({kinds})" if kinds else ""),
        f"former memories: {counts.superseded}",
        f"journal entries without a memory yet: {counts.pending}",
        f"changes decided but not made yet: {counts.planned}",
        f"last sleep: {last}",
        f"store: {counts.storage.store}, embedder {counts.storage.embedder}{size}",
        counts.note,
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def render_import(done: ImportResult) -> str:
    left = f" {pluralize(done.left_out, 'summary', 'summaries')} left out." if done.left_out else ""
    present = (
        f" {pluralize(done.already_present, 'entry was', 'entries were')} there already."
        if done.already_present
        else ""
    )
    made = "a memory of it" if done.new == 1 else "memories of them"
    night = f" The next sleep makes {made}." if done.new else ""
    return f"Added {pluralize(done.new, 'journal entry', 'journal entries')}.{present}{left}{night}"


def render_addition(done: ImportResult) -> str:
    return "Noted. The next sleep makes a memory of it." if done.new else "That is noted already. Nothing was changed."


def render_rebuild(done: RebuildResult) -> str:
    learned = pluralize(done.learned, "new journal entry", "new journal entries")
    read = [f"Read {pluralize(done.read, 'message')} again: {learned}."] if done.read else []
    changed = pluralize(done.changed, "memory", "memories")
    return "\n".join([*read, f"The memories agree with the journal now; changed: {changed}.", *done.notes])


# ----------------------------------------------------------------------------------------------------------------- JSON


def _inner(*path: str) -> Any:
    return Field(validation_alias=AliasPath(*path))


class MemoryItem(Item):
    """A memory, or a journal entry without one, as an export has it too."""

    id: str = _inner("reference")
    memory_id: TextOrNull = _inner("memory", "id")
    kind: str = _inner("memory", "kind")
    text: str = _inner("memory", "text")
    said_at: datetime = _inner("memory", "said_at")
    until: datetime | None = _inner("memory", "until")
    superseded_by: TextOrNull = _inner("replaced_by")
    importance: float = _inner("memory", "importance")
    entries: tuple[int, ...] = _inner("memory", "entries")


def _rounded(parts: Mapping[str, float]) -> Mapping[str, float]:
    return {name: round(worth, 4) for name, worth in parts.items()}


class MemoryHitItem(MemoryItem):
    """A memory that was found."""

    superseded_by: Annotated[str | None, BeforeValidator(lambda id: id[:8] or None)] = _inner("memory", "superseded_by")
    score: Annotated[float, AfterValidator(lambda score: round(score, 4))]
    sources: tuple[int, ...]  # messages


class ExplainedHitItem(MemoryHitItem):
    """A memory that was found, and why."""

    parts: Annotated[Mapping[str, float], AfterValidator(_rounded)]  # what each feature adds to the score


class MemorySearchItem(Item):
    """How a search went, and what it found."""

    words: Mapping[str, tuple[str, ...]]  # a word of the question: stems that stand for it
    asks_for: tuple[str, ...]
    entries: int  # in the journal
    by_words: int  # parts of entries that have words of the question
    by_meaning: int  # those that were compared for their meaning alone
    hits: tuple[ExplainedHitItem, ...]


class SaidMessage(Item):
    """A message that a journal entry came from."""

    id: int
    at: datetime = _inner("ts")
    session: str
    role: str
    text: str = _inner("content")


class SaidItem(Item):
    """A journal entry that a memory was made of."""

    entry: int = _inner("entry", "id")
    source_type: str = _inner("entry", "source_type")
    at: datetime = _inner("entry", "timestamp")
    text: str = _inner("entry", "content")
    missing: tuple[int, ...] = _inner("missing_ids")  # messages that the log does not have
    messages: list[SaidMessage] = _inner("records")


class ProvenanceItem(MemoryItem):
    """A memory, and where it came from."""

    said: list[SaidItem]
    versions: tuple[MemoryVersion, ...]
    note: str


class AsOfItem(Item):
    """What was known at a time."""

    as_of: datetime = _inner("at")
    first: datetime | None = _inner("first_noted_at")  # when the first of all that is remembered was noted
    known: list[MemoryItem] = _inner("memories")


class MemoryCountsItem(Item):
    """How much is remembered."""

    current: int
    former: int = _inner("superseded")
    kinds: dict[str, int]
    pending: int  # journal entries without a memory
    planned: int  # changes that are decided and not made
    last_sleep: datetime | None = Field(None, validation_alias=AliasPath("last_sleep", "started_at"))
    store: str = _inner("storage", "store")
    embedder: str = _inner("storage", "embedder")
    bytes: int | None = _inner("storage", "size")
    note: str


class CorrectionItem(Item):
    """A correction."""

    former: str = _inner("previous", "reference")
    id: str = _inner("current", "reference")
    memory_id: TextOrNull = _inner("current", "id")
    text: str = _inner("current", "text")
    waiting: TextOrNull = _inner("pending_reason")  # why it is no memory yet


class MemoryImportItem(Item):
    """Journal entries that were imported."""

    new: int
    there: int = _inner("already_present")
    left_out: int  # summaries of conversations
