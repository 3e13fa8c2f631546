"""One log checked against its own hash chain and against the index, in one pass; and the list of findings of any
check.

What always holds: nothing is changed. A line is hashed as it stands and parsed no further than its header, so that
a gigabyte takes seconds. After a broken line the check continues with the next. Of every kind of problem the first
cases are listed and the rest counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from sqlite3 import Row
from typing import Any

from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange
from assistant.core.records import IntegrityProblem
from assistant.store.database import Database
from assistant.store.log.format import GENESIS_HASH, compute_commitment, hash_header, split_line
from assistant.store.log.reader import LogFiles
from assistant.store.script.index import find_message_row

_MAX_LISTED_PER_KIND = 20


class Findings:
    def __init__(self) -> None:
        self._told: list[IntegrityProblem] = []
        self._found: Counter[tuple[str, str, bool]] = Counter()

    def add(self, kind: str, where: str, text: str, *, repairable: bool = False) -> None:
        self._found[kind, where, repairable] += 1
        if self._found[kind, where, repairable] <= _MAX_LISTED_PER_KIND:
            self._told.append(IntegrityProblem(kind, where, text, repairable))

    @contextmanager
    def collect_store_errors(self, where: str) -> Iterator[None]:
        """A part of the check that the damage itself ends is a finding, and the other parts go on."""
        try:
            yield
        except StoreError as error:
            self.add("database", where, str(error))

    def problems(self) -> tuple[IntegrityProblem, ...]:
        rest = [
            IntegrityProblem(kind, where, f"... and {found - _MAX_LISTED_PER_KIND} more like these", repairable)
            for (kind, where, repairable), found in self._found.items()
            if found > _MAX_LISTED_PER_KIND
        ]
        return (*self._told, *rest)


_COMPARED = ("id", "session", "generation", "scope", "kind", "role", "tool_call_id", "turn", "ts")
_ROWS = (
    f"SELECT seq, {', '.join(_COMPARED)}, commitment, byte_start, byte_end FROM messages"
    " WHERE session = ? AND seq >= ? ORDER BY seq"
)
_LAST = "SELECT seq, byte_start FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
_MAX_RECHECKED = 1000

_fields = itemgetter(*_COMPARED, "commit")
_parse = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class _LineHeader:
    """What a line says of itself: `fields` as an index row would have them."""

    seq: int
    fields: tuple[Any, ...]


@dataclass(slots=True)
class LogScan:
    """What was read of one log so far. `late` are records without a row: (id, seq, offset)."""

    session: str
    where: str
    seq: int = 0
    hash: str | None = GENESIS_HASH
    records: int = 0
    bytes: int = 0
    blank_ids: set[int] = field(default_factory=set)
    redacted_ids: set[int] = field(default_factory=set)
    unindexed: list[tuple[int, int, int]] = field(default_factory=list)


def scan_log(db: Database, log: LogFiles, session: str, findings: Findings, *, last: int | None = None) -> LogScan:
    """Check chain, commitments and index of a session's log, or of its `last` so many records alone."""
    walk = LogScan(session, log.log_place(session, LogByteRange(0, 0)).path)
    start = None if last is None else db.row(_LAST, (session, last - 1))
    if start is not None:
        # What stands before is not looked at, so nobody knows what the first one has to continue.
        walk.seq, walk.hash = start["seq"] - 1, None
    rows = db.iterate(_ROWS, (session, walk.seq + 1))
    row = next(rows, None)
    for offset, line in log.iterate_lines(session, start["byte_start"] if start is not None else 0):
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
        elif len(walk.unindexed) < _MAX_RECHECKED:
            walk.unindexed.append((seen.fields[0], seen.seq, offset))
        else:
            _without_row(walk, seen.fields[0], seen.seq, findings)
    while row is not None:
        _without_record(walk, row, findings)
        row = next(rows, None)
    _look_again(db, walk, findings)
    _blanks(walk, findings)
    return walk


def _record(walk: LogScan, offset: int, line: bytes, findings: Findings) -> _LineHeader | None:
    """A line, after chain and commitment were checked; None where it is no record."""
    try:
        opened, salt, body = split_line(line)
        header: dict[str, Any] = _parse(opened.decode() + "}")[0]
        seen, prev, refs = _LineHeader(int(header["seq"]), _fields(header)), header["prev"], header["refs"]
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
        walk.redacted_ids.update(refs)
    if not salt.strip():
        walk.blank_ids.add(header["id"])
    elif not _matches_commitment(header["commit"], salt, body):
        findings.add("commitment", walk.where, f"the words of record {header['id']} (byte {offset}) were changed")
    walk.seq, walk.hash = seen.seq, hash_header(opened)
    return seen


def _matches_commitment(commit: str, salt: str, body: bytes) -> bool:
    try:
        return compute_commitment(salt, body) == commit
    except ValueError:
        return False


def _differs(walk: LogScan, row: Row, seen: _LineHeader, findings: Findings) -> None:
    columns = (*_COMPARED, "commitment")
    wrong = [name for name, value in zip(columns, seen.fields, strict=True) if row[name] != value] or ["bytes"]
    text = f"the index row of record {seen.fields[0]} (seq {seen.seq}) differs in {', '.join(wrong)}"
    findings.add("index", walk.where, text, repairable=True)


def _without_record(walk: LogScan, row: Row, findings: Findings) -> None:
    text = f"message {row['id']} (seq {row['seq']}) is in the index and not in the log"
    findings.add("index", walk.where, text, repairable=True)


def _without_row(walk: LogScan, message_id: int, seq: int, findings: Findings) -> None:
    text = f"record {message_id} (seq {seq}) is in the log and not in the index"
    findings.add("index", walk.where, text, repairable=True)


def _look_again(db: Database, walk: LogScan, findings: Findings) -> None:
    """A running daemon logs before it indexes: a record without a row may have got one since."""
    for message_id, seq, offset in walk.unindexed:
        row = find_message_row(db, message_id)
        if row is None or row["byte_start"] != offset:
            _without_row(walk, message_id, seq, findings)


def _blanks(walk: LogScan, findings: Findings) -> None:
    for message_id in sorted(walk.blank_ids - walk.redacted_ids):
        findings.add("commitment", walk.where, f"record {message_id} is blank and no redaction names it")


def list_logged_sessions(log: LogFiles, findings: Findings) -> Iterator[str]:
    """The sessions that have a log; a log whose first line names none is a finding."""
    for path, session in log.list_logs():
        if session is None:
            findings.add("log", f"log/{path.parent.name}/{path.name}", "no record at byte 0")
        else:
            yield session
