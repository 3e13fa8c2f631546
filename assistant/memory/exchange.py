"""Export and import of memories as JSON.

- A file is parsed completely before anything is written; errors name their location, and nothing is changed.
- Keys are derived from scope, text and date, so importing a file twice changes nothing.
- Imported entries refer to no messages of this home (I6), and belong to the scope they are imported into (I10).
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.memories import JournalEntry, MemoryState
from assistant.core.text import lazy_regex

EXPORT_VERSION = 1
_NAMESPACE = uuid.UUID("8d8f3f52-7a49-4f86-8b1f-0f9e4b0f6a55")
_KINDS = ("fact", "preference", "decision", "task", "summary")
_IMPORTED = 0.5
# More than a person writes in years.
MAX_ITEMS = 100_000
_BATCH = 50
_UNCHANGED = "Nothing was imported."
_CLOCKS_DIFFER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """One item of an import file."""

    text: str
    at: datetime | None = None  # None: not in the file
    importance: float = _IMPORTED
    tags: tuple[str, ...] = ("fact",)
    number: int | None = None  # its id in the file
    superseded_by: int | None = None  # number of its successor
    summary: bool = False  # a conversation summary, which is not a memory


# -------------------------------------------------------------------------------------------------------------- export


def export_scope(
    scope: str, entries: Sequence[JournalEntry], memories: Sequence[MemoryState], now: datetime
) -> dict[str, Any]:
    """Export a scope as JSON: journal entries by id, and memories (not entries without one)."""
    return {
        "version": EXPORT_VERSION,
        "scope": scope,
        "exported_at": now.isoformat(),
        "entries": _export_entries(entries),
        "memories": [export_memory(state) for state in memories if state.memory.id],
    }


def _export_entries(entries: Sequence[JournalEntry]) -> list[dict[str, Any]]:
    numbers = {entry.id for entry in entries}
    return [
        {
            "id": entry.id,
            "key": entry.key,
            "text": entry.content,
            "at": entry.timestamp.isoformat(),
            "source_type": entry.source_type,
            "importance": entry.importance,
            "tags": list(entry.tags),
            "session": entry.session,
            "sources": list(entry.sources),
            "superseded_by": entry.superseded_by if entry.superseded_by in numbers else None,
        }
        for entry in sorted(entries, key=lambda entry: entry.id or 0)
    ]


def export_memory(state: MemoryState) -> dict[str, Any]:
    """Export a memory, or an entry without one, as JSON; `id` is its reference."""
    memory = state.memory
    return {
        "id": state.reference,
        "memory_id": memory.id or None,
        "kind": memory.kind,
        "text": memory.text,
        "said_at": memory.said_at.isoformat(),
        "until": memory.until.isoformat() if memory.until else None,
        "superseded_by": state.replaced_by or None,
        "importance": memory.importance,
        "entries": list(memory.entries),
    }


# -------------------------------------------------------------------------------------------------------------- import


def parse_import(text: str, now: datetime) -> list[ImportedItem]:
    """Parse a file: our export in either form, a JSON list of texts, or one text per line. Raises `UsageError` for
    malformed content and future dates."""
    items = _parse(text)
    if len(items) > MAX_ITEMS:
        raise UsageError(f"The file has {len(items):,} texts; at most {MAX_ITEMS:,} are taken at once. {_UNCHANGED}")
    _reject_future_dates(items, now)
    return items


def _parse(text: str) -> list[ImportedItem]:
    start = text.lstrip("\ufeff").lstrip()
    if not start.startswith(("{", "[")):
        return list(_plain(text.lstrip("\ufeff")))
    try:
        whole = json.loads(start)
    except json.JSONDecodeError as error:
        return _lines(start, error)
    except RecursionError:
        raise UsageError(f"The file is nested too deeply. {_UNCHANGED}") from None
    except ValueError:
        raise UsageError(f"The file has a number that is too long. {_UNCHANGED}") from None
    if isinstance(whole, list):
        return [_text(item, f"item {number}") for number, item in enumerate(whole, 1)]
    return _exported(whole, ((item, f"entries[{place}]") for place, item in enumerate(_list(whole, "entries"))))


def _reject_future_dates(items: Iterable[ImportedItem], now: datetime) -> None:
    """Reject future dates, with a day's tolerance between clocks."""
    for item in items:
        if item.at is not None and item.at > now + _CLOCKS_DIFFER:
            raise UsageError(f'"{item.text[:60]}" is dated {item.at.date().isoformat()}, in the future. {_UNCHANGED}')


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """Entries to write together, and the replacements that involve any of them."""

    entries: Sequence[JournalEntry]
    replaced: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ImportPlan:
    entry_count: int  # including existing ones
    batches: Sequence[ImportBatch]


def plan_import(
    items: Sequence[ImportedItem],
    existing: Mapping[tuple[str, datetime], JournalEntry],
    scope: str,
    session: str,
    now: datetime,
) -> ImportPlan:
    """Plan an import; `existing` has the journal's entries by text and time."""
    both = [
        (item, existing.get((item.text, item.at or now)) or _to_journal_entry(item, scope, session, now))
        for item in items
        if not item.summary
    ]
    keys = {item.number: entry.key for item, entry in both if item.number is not None}
    pairs_by_key: dict[str, dict[str, str]] = defaultdict(dict)
    for item, entry in both:
        if item.superseded_by in keys:
            by = keys[item.superseded_by]
            pairs_by_key[entry.key][entry.key] = pairs_by_key[by][entry.key] = by
    new = [entry for _, entry in both if entry.id is None]
    batches = []
    for begin in range(0, len(new), _BATCH):
        entries = new[begin : begin + _BATCH]
        replaced = {previous: by for entry in entries for previous, by in pairs_by_key[entry.key].items()}
        batches.append(ImportBatch(entries, replaced))
    return ImportPlan(len(both), batches)


def _to_journal_entry(item: ImportedItem, scope: str, session: str, now: datetime) -> JournalEntry:
    """Return the journal entry of an item. Without a date it is dated `now`, but its key does not depend on that."""
    dated = item.at.astimezone(UTC).isoformat() if item.at else ""
    key = f"import:{uuid.uuid5(_NAMESPACE, repr((scope, item.text, dated))).hex}"
    return JournalEntry(key, scope, session, 1, item.text, item.at or now, "import", item.importance, item.tags)


# A list marker in Markdown.
_BULLET = lazy_regex(r"^(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")


def _plain(text: str) -> Iterable[ImportedItem]:
    """Parse one text per line. Raises `UsageError` for JSON lines without a JSON header."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith('{"'):
            raise UsageError(f"Line {number} is JSON and the first line is none. {_UNCHANGED}")
        if _has_words(line):
            yield ImportedItem(_BULLET.sub("", line.strip(), count=1))


def _lines(text: str, error: json.JSONDecodeError) -> list[ImportedItem]:
    """Parse JSON lines with a header."""
    first, _, rest = text.partition("\n")
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        raise UsageError(f"Line {error.lineno} is not JSON ({error.msg}). {_UNCHANGED}") from None
    entries = []
    for number, line in enumerate(rest.split("\n"), 2):
        if line.strip():
            row = _row(line, f"line {number}")
            entries += [(row["entry"], f"line {number}")] if "entry" in row else []
    return _exported(header, entries)


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _malformed(where, "is not JSON") from None
    if not isinstance(row, dict) or not ({"entry", "memory"} & row.keys()):
        raise _malformed(where, "is neither an entry nor a memory")
    return row


def _exported(head: Any, rows: Iterable[tuple[Any, str]]) -> list[ImportedItem]:
    if not isinstance(head, dict) or head.get("version") != EXPORT_VERSION:
        version = head.get("version") if isinstance(head, dict) else None
        raise UsageError(f"The file is no export of version {EXPORT_VERSION} (it says {version!r:.40}). {_UNCHANGED}")
    items = [(_entry(row, where), where) for row, where in rows]
    after = {item.number: item.superseded_by for item, _ in items}
    circles = _numbers_in_circles(after)
    for item, where in items:
        if item.superseded_by is not None and (item.superseded_by not in after or item.number in circles):
            raise _malformed(where, f"was superseded by {item.superseded_by}, which is no later entry here")
    return [item for item, _ in items]


def _numbers_in_circles(after: Mapping[int | None, int | None]) -> set[int | None]:
    """Return the numbers that lead into a cycle. Linear time."""
    circling: set[int | None] = set()
    ending: set[int | None] = {None}
    for number in after:
        way: dict[int | None, None] = {}
        while number not in ending and number not in circling and number not in way:
            way[number] = None
            number = after.get(number)
        (ending if number in ending else circling).update(way)
    return circling


def _entry(row: Any, where: str) -> ImportedItem:
    if not isinstance(row, Mapping):
        raise _malformed(where, "is not an object")
    item = _text(row.get("text"), where)
    weight, tags = row.get("importance", _IMPORTED), row.get("tags", ["fact"])
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise _malformed(where, "has an importance that is not 0 to 1")
    if not isinstance(tags, list) or not all(isinstance(tag, str) and len(tag) <= 100 for tag in tags):
        raise _malformed(where, "has tags that are no list of short texts")
    number, by = _number(row, "id", where), _number(row, "superseded_by", where)
    known_tags = tuple(tag for tag in tags if tag in _KINDS) or ("fact",)
    return replace(
        item,
        at=_moment(row.get("at"), where),
        importance=float(weight),
        tags=known_tags,
        number=number,
        superseded_by=by,
        summary=row.get("source_type") == "context_synthesis",
    )


def _text(value: Any, where: str) -> ImportedItem:
    if not isinstance(value, str) or not _has_words(value):
        raise _malformed(where, "has no words")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _malformed(where, "is no Unicode text") from None
    return ImportedItem(value.strip())


def _moment(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        raise _malformed(where, "has an `at` that is no date and time") from None


def _number(row: Mapping[str, Any], name: str, where: str) -> int | None:
    value = row.get(name)
    if value is not None and type(value) is not int:
        raise _malformed(where, f"has an `{name}` that is no number")
    return value


def _list(whole: Any, name: str) -> list[Any]:
    values = whole.get(name, []) if isinstance(whole, dict) else []
    if not isinstance(values, list):
        raise UsageError(f"`{name}` is not a list. {_UNCHANGED}")
    return values


def _has_words(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _malformed(where: str, what: str) -> UsageError:
    return UsageError(f"{where[0].upper()}{where[1:]} {what}. {_UNCHANGED}")
