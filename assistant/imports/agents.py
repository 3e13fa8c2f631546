"""Reads files of other assistants, and Markdown.

- OpenClaw, nanobot, and our own `sessions export --format jsonl`: one conversation per file, one JSON object per line.
- Hermes: `MEMORY.md` and `USER.md`, with entries separated by lines of `§`; sessions as JSON lines.
- Letta: an agent file (`.af`), JSON with its messages and its memory blocks.
- Markdown (`MEMORY.md`, `memory/2026-01-05.md`, notes): each paragraph or list item is a message, dated by the file
  name, or else by the time the file was last changed.

The content of a memory file counts as said by the person who imports it, at the time of the import. It has no ids, so
its texts are identified by their content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import PurePath
from typing import Any, BinaryIO

from assistant.core.import_records import ImportedMessage, ImportSource
from assistant.core.text import lazy_regex
from assistant.imports.json_stream import MAX_OBJECT, TOO_LARGE, CutOff, Utf8Stream, read_objects
from assistant.imports.records import (
    BadRecord,
    Read,
    ReadOptions,
    RejectedRecord,
    clean_id,
    clean_title,
    clean_words,
    in_batches,
    read_time,
)

_LONGEST_LINE = MAX_OBJECT
_DAY = lazy_regex(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_ITEM = lazy_regex(r"\A[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_MANY = 10_000


def iterate_lines(stream: BinaryIO, most: int = _LONGEST_LINE) -> Iterator[str | None]:
    """Yield the lines of a text in any common encoding; None for one that is too long."""
    reader = Utf8Stream(stream)
    kept = bytearray()
    is_long = False
    while block := reader.read(1 << 16):
        *lines, rest = block.split(b"\n")
        for line in lines:
            kept += b"" if is_long else line
            yield None if is_long or len(kept) > most else kept.decode("utf-8", "replace")
            kept, is_long = bytearray(), False
        if not is_long:
            kept += rest
            is_long = len(kept) > most
            kept = bytearray() if is_long else kept
    if kept or is_long:
        yield None if is_long else kept.decode("utf-8", "replace")


# ---------------------------------------------------------------------------------------------------------- JSON lines


def read_json_lines(stream: BinaryIO, name: str, options: ReadOptions) -> Iterator[Read]:
    """Read a conversation of OpenClaw, nanobot, Hermes or ours."""
    lines = _parsed_lines(stream)
    first = next(lines, None)
    while first is not None and isinstance(first[1], RejectedRecord):
        yield first[1]
        first = next(lines, None)
    if first is None:
        return
    number, head = first
    assert not isinstance(head, RejectedRecord)
    source: ImportSource = "jsonl"
    if head.get("type") == "session":
        source = "openclaw"
    elif head.get("_type") == "metadata":
        source = "nanobot"
    elif "role" in head and "session" not in head:
        source = "hermes"
    external_id = clean_title(head.get("id") if source == "openclaw" else head.get("session"), PurePath(name).stem)

    def messages() -> Iterator[ImportedMessage | RejectedRecord]:
        if source in ("jsonl", "hermes"):
            yield from _from_line(head, number, options)
        for place, row in lines:
            if isinstance(row, RejectedRecord):
                yield row
            else:
                yield from _from_line(row, place, options)

    yield from in_batches(source, external_id, clean_title(head.get("title"), PurePath(name).stem), messages())


def _parsed_lines(stream: BinaryIO) -> Iterator[tuple[int, Mapping[str, Any] | RejectedRecord]]:
    for number, line in enumerate(iterate_lines(stream), 1):
        if line is not None and not line.strip():
            continue
        try:
            row = None if line is None else json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield number, row
        else:
            why = "is too long" if line is None else "is no JSON object; the file may be cut off there"
            yield number, RejectedRecord(f"line {number}", why)


def _from_line(row: Mapping[str, Any], number: int, options: ReadOptions) -> Iterator[ImportedMessage | RejectedRecord]:
    """Return a message, if the line is one."""
    message = row["message"] if row.get("type") == "message" and isinstance(row.get("message"), Mapping) else row
    is_said = row.get("type", "message") == "message" and row.get("kind", "message") == "message"
    if message.get("role") not in ("user", "assistant") or not is_said:
        return
    try:
        text = clean_words(_text_of(message.get("content")))
        if text:
            at = read_time(_first(row, message, "at", "ts", "timestamp", "created_at"), options)
            external_id = clean_id(_first(row, message, "id") or f"line {number}")
            speaker = str(row.get("name") or "") if message["role"] == "user" else ""
            yield ImportedMessage(external_id, message["role"], text, at, speaker)
    except BadRecord as error:
        yield RejectedRecord(f"line {number}", str(error))


def _first(row: Mapping[str, Any], message: Mapping[str, Any], *names: str) -> Any:
    values = (place.get(name) for place in (row, message) for name in names)
    value = next((value for value in values if value is not None), None)
    # JavaScript programs use milliseconds since 1970.
    return value / 1000 if isinstance(value, int | float) and value > 1e11 else value


def _text_of(content: Any) -> str:
    """Return a text, or the texts among its blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = (
        block.get("text") for block in content if isinstance(block, Mapping) and block.get("type", "text") == "text"
    )
    return "\n\n".join(text for text in texts if isinstance(text, str))


# --------------------------------------------------------------------------------------------------------------- Letta


def read_letta(stream: BinaryIO, name: str, modified: datetime, options: ReadOptions) -> Iterator[Read]:
    """Read an agent file: its messages, and the memory blocks about the owner."""
    said: list[ImportedMessage | RejectedRecord] = []
    learned: list[ImportedMessage | RejectedRecord] = []
    number = 0
    title = PurePath(name).stem
    places = {("agents", "item", "messages", "item"), ("messages", "item")}
    blocks = {("blocks", "item"), ("core_memory", "item"), ("agents", "item", "blocks", "item")}
    try:
        for path, value in read_objects(stream, places | blocks):
            if path in places:
                number += 1
                said += _letta_message(value, number, options)
            elif path in blocks and isinstance(value, Mapping) and value.get("label") != "persona":
                text = value.get("value")
                if isinstance(text, str) and text.strip():
                    learned += _paragraph_messages(text.splitlines(), modified)
            elif path in (("agents", "item", "name"), ("name",)):
                title = clean_title(value, title)
            if len(said) > _MANY:
                yield from in_batches("letta", title, title, iter(said))
                said = []
    except CutOff:
        said.append(RejectedRecord(f"message {number + 1}", "the file ends, or is broken, there"))
    except BadRecord as error:
        said.append(RejectedRecord(f"message {number}", str(error)))
    yield from in_batches("letta", title, title, iter(said))
    yield from in_batches("letta", f"{title}: memory", f"{title}: memory", iter(learned))


def _letta_message(row: Any, number: int, options: ReadOptions) -> list[ImportedMessage | RejectedRecord]:
    where = f"message {number}"
    if row is TOO_LARGE or not isinstance(row, Mapping):
        return [RejectedRecord(where, "is too large, or no message")]
    named = {**row, "id": row.get("id") or where}
    return [
        RejectedRecord(where, read.why) if isinstance(read, RejectedRecord) else read
        for read in _from_line({name: value for name, value in named.items() if name != "name"}, number, options)
        if isinstance(read, RejectedRecord) or not _is_heartbeat(read.text)
    ]


def _is_heartbeat(text: str) -> bool:
    """Return whether it is one of Letta's own messages to its model, JSON in the role of the user."""
    return text.startswith("{") and '"type"' in text[:200]


# ------------------------------------------------------------------------------------------------------------ Markdown


def read_markdown(stream: BinaryIO, name: str, modified: datetime, options: ReadOptions) -> Iterator[Read]:
    """Yield one conversation, its texts dated at noon of the day in the file name, else `modified`."""
    path = PurePath(name)
    source: ImportSource = "markdown"
    at = modified
    if match := _DAY.search(path.stem):
        try:
            at = read_time(f"{match[1]}T12:00:00", options)
        except BadRecord:
            at = modified
    lines = (line if line is not None else "" for line in iterate_lines(stream, 1_000_000))
    yield from in_batches(source, name, name, _paragraph_messages(lines, at))


def _paragraph_messages(lines: Iterable[str], at: datetime) -> Iterator[ImportedMessage | RejectedRecord]:
    """Yield paragraphs and list items, with the headings above them."""
    heading = ""
    paragraph: list[str] = []
    for line in chain(lines, [""]):
        is_mark = _is_mark(line.strip())
        starts = is_mark or line.startswith("#") or _ITEM.match(line) is not None
        if starts and paragraph:
            yield _paragraph(paragraph, heading, at)
            paragraph = []
        if line.startswith("#"):
            heading = line.strip("# \t")
        elif not is_mark:
            paragraph.append(_ITEM.sub("", line.rstrip(), count=1) if starts else line.rstrip())


def _is_mark(text: str) -> bool:
    """Return whether a line only separates others: empty, a rule, Hermes' sign, or a comment."""
    return not text.strip("-=*§") or (text.startswith("<!--") and text.endswith("-->"))


def _paragraph(lines: list[str], heading: str, at: datetime) -> ImportedMessage | RejectedRecord:
    try:
        text = clean_words("\n".join(lines))
    except BadRecord as error:
        return RejectedRecord(heading or "a paragraph", str(error))
    return ImportedMessage("", "user", text, at)
