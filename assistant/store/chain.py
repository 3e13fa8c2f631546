"""One log against its own chain and against the index, read once from end to end.

What always holds: nothing is changed. A line is hashed as it stands, without being parsed beyond its header, so that a
gigabyte takes seconds. Where a line is broken the check goes on behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from sqlite3 import Row
from typing import Any

from assistant.core.messages import LogByteRange
from assistant.store import index
from assistant.store.database import Database
from assistant.store.findings import Findings
from assistant.store.line import GENESIS, commitment, header_hash, split
from assistant.store.log_files import LogFiles

_COMPARED = ("id", "session", "generation", "scope", "kind", "role", "tool_call_id", "turn", "ts")
_ROWS = (
    f"SELECT seq, {', '.join(_COMPARED)}, commitment, byte_start, byte_end FROM messages"
    " WHERE session = ? AND seq >= ? ORDER BY seq"
)
_LAST = "SELECT seq, byte_start FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
_LOOKED_AT_AGAIN = 1000

_fields = itemgetter(*_COMPARED, "commit")
_parse = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a line says of itself: `fields` as an index row would have them."""

    seq: int
    fields: tuple[Any, ...]


@dataclass(slots=True)
class Walk:
    """What was read of one log so far. `late` are records without a row: (id, seq, offset)."""

    session: str
    where: str
    seq: int = 0
    hash: str | None = GENESIS
    records: int = 0
    bytes: int = 0
    blanked: set[int] = field(default_factory=set)
    redacted: set[int] = field(default_factory=set)
    late: list[tuple[int, int, int]] = field(default_factory=list)


def walk_log(db: Database, log: LogFiles, session: str, findings: Findings, *, last: int | None = None) -> Walk:
    """Check chain, commitments and index of a session's log, or of its `last` so many records alone."""
    walk = Walk(session, log.place(session, LogByteRange(0, 0)).path)
    start = None if last is None else db.row(_LAST, (session, last - 1))
    if start is not None:
        # What stands before is not looked at, so nobody knows what the first one has to continue.
        walk.seq, walk.hash = start["seq"] - 1, None
    rows = db.each(_ROWS, (session, walk.seq + 1))
    row = next(rows, None)
    for offset, line in log.lines(session, start["byte_start"] if start is not None else 0):
        walk.bytes += len(line)
        seen = _record(walk, offset, line, findings)
        if seen is None:
            continue
        while row is not None and row["seq"] < seen.seq:
            _without_record(walk, row, findings)
            row = next(rows, None)
        if row is not None and row["seq"] == seen.seq:
            if tuple(row) != (seen.seq, *seen.fields, offset, offset + len(line)):
                _differs(walk, row, seen, findings)
            row = next(rows, None)
        elif len(walk.late) < _LOOKED_AT_AGAIN:
            walk.late.append((seen.fields[0], seen.seq, offset))
        else:
            _without_row(walk, seen.fields[0], seen.seq, findings)
    while row is not None:
        _without_record(walk, row, findings)
        row = next(rows, None)
    _look_again(db, walk, findings)
    _blanks(walk, findings)
    return walk


def _record(walk: Walk, offset: int, line: bytes, findings: Findings) -> _Seen | None:
    """A line, after chain and commitment were checked; None where it is no record."""
    try:
        opened, salt, body = split(line)
        header: dict[str, Any] = _parse(opened.decode() + "}")[0]
        seen, prev, refs = _Seen(int(header["seq"]), _fields(header)), header["prev"], header["refs"]
    except (ValueError, KeyError, TypeError):
        torn = not line.endswith(b"\n")
        kind, text = ("torn", "a torn last record") if torn else ("log", "no record")
        findings.add(kind, walk.where, f"{text} at byte {offset}", repairable=torn)
        walk.hash = None
        return None
    walk.records += 1
    if walk.hash is not None and (prev != walk.hash or seen.seq != walk.seq + 1):
        text = f"the record at byte {offset} (seq {seen.seq}) does not continue the one before"
        findings.add("chain", walk.where, text)
    if header["kind"] == "redaction":
        walk.redacted.update(refs)
    if not salt.strip():
        walk.blanked.add(header["id"])
    elif not _kept(header["commit"], salt, body):
        findings.add("commitment", walk.where, f"the words of record {header['id']} (byte {offset}) were changed")
    walk.seq, walk.hash = seen.seq, header_hash(opened)
    return seen


def _kept(commit: str, salt: str, body: bytes) -> bool:
    try:
        return commitment(salt, body) == commit
    except ValueError:
        return False


def _differs(walk: Walk, row: Row, seen: _Seen, findings: Findings) -> None:
    columns = (*_COMPARED, "commitment")
    wrong = [name for name, value in zip(columns, seen.fields, strict=True) if row[name] != value] or ["bytes"]
    text = f"the index row of record {seen.fields[0]} (seq {seen.seq}) differs in {', '.join(wrong)}"
    findings.add("index", walk.where, text, repairable=True)


def _without_record(walk: Walk, row: Row, findings: Findings) -> None:
    text = f"message {row['id']} (seq {row['seq']}) is in the index and not in the log"
    findings.add("index", walk.where, text, repairable=True)


def _without_row(walk: Walk, message_id: int, seq: int, findings: Findings) -> None:
    text = f"record {message_id} (seq {seq}) is in the log and not in the index"
    findings.add("index", walk.where, text, repairable=True)


def _look_again(db: Database, walk: Walk, findings: Findings) -> None:
    """A running daemon logs before it indexes: a record without a row may have got one since."""
    for message_id, seq, offset in walk.late:
        row = index.find(db, message_id)
        if row is None or row["byte_start"] != offset:
            _without_row(walk, message_id, seq, findings)


def _blanks(walk: Walk, findings: Findings) -> None:
    for message_id in sorted(walk.blanked - walk.redacted):
        findings.add("commitment", walk.where, f"record {message_id} is blank and no redaction names it")


def sessions_of(log: LogFiles, findings: Findings) -> Iterator[str]:
    """The sessions that have a log; a log whose first line names none is a finding."""
    for path, session in log.found():
        if session is None:
            findings.add("log", f"log/{path.parent.name}/{path.name}", "no record at byte 0")
        else:
            yield session
