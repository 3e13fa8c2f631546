"""One log checked against its own hash chain and against the index, in one pass; and the list of findings of any
check.

What always holds: nothing is changed. A line is hashed as it is and parsed no further than its header, so that
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
    """The problems of a check; of each kind the first are listed and the rest counted."""

    def __init__(self) -> None:
        self._listed: list[IntegrityProblem] = []
        self._counts: Counter[tuple[str, str, bool]] = Counter()

    def add(self, kind: str, where: str, text: str, *, repairable: bool = False) -> None:
        self._counts[kind, where, repairable] += 1
        if self._counts[kind, where, repairable] <= _MAX_LISTED_PER_KIND:
            self._listed.append(IntegrityProblem(kind, where, text, repairable))

    @contextmanager
    def collect_store_errors(self, where: str) -> Iterator[None]:
        """A part of the check that the damage itself ends is a finding, and the other parts continue."""
        try:
            yield
        except StoreError as error:
            self.add("database", where, str(error))

    def problems(self) -> tuple[IntegrityProblem, ...]:
        summaries = [
            IntegrityProblem(kind, where, f"... and {count - _MAX_LISTED_PER_KIND} more like these", repairable)
            for (kind, where, repairable), count in self._counts.items()
            if count > _MAX_LISTED_PER_KIND
        ]
        return (*self._listed, *summaries)


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
    """What a line says of itself."""

    seq: int
    fields: tuple[Any, ...]  # as an index row would have them


@dataclass(slots=True)
class LogScan:
    """What was read of one log so far."""

    session: str
    where: str  # the path of the log
    seq: int = 0
    hash: str | None = GENESIS_HASH  # of the last header; None where it is not known
    records: int = 0
    bytes: int = 0
    blank_ids: set[int] = field(default_factory=set)
    redacted_ids: set[int] = field(default_factory=set)
    unindexed: list[tuple[int, int, int]] = field(default_factory=list)  # (id, seq, offset) of records without a row


def scan_log(db: Database, log: LogFiles, session: str, findings: Findings, *, last: int | None = None) -> LogScan:
    """Check chain, commitments and index of a session's log, or of its `last` so many records alone."""
    scan = LogScan(session, log.log_place(session, LogByteRange(0, 0)).path)
    start = None if last is None else db.row(_LAST, (session, last - 1))
    if start is not None:
        # What comes before is not read, so it is not known what the first one has to continue.
        scan.seq, scan.hash = start["seq"] - 1, None
    rows = db.iterate(_ROWS, (session, scan.seq + 1))
    row = next(rows, None)
    for offset, line in log.iterate_lines(session, start["byte_start"] if start is not None else 0):
        scan.bytes += len(line)
        seen = _check_line(scan, offset, line, findings)
        if seen is None:
            continue
        while row is not None and row["seq"] < seen.seq:
            _add_missing_record(scan, row, findings)
            row = next(rows, None)
        if row is not None and row["seq"] == seen.seq:
            if tuple(row) != (seen.seq, *seen.fields, offset, offset + len(line)):
                _add_difference(scan, row, seen, findings)
            row = next(rows, None)
        elif len(scan.unindexed) < _MAX_RECHECKED:
            scan.unindexed.append((seen.fields[0], seen.seq, offset))
        else:
            _add_missing_row(scan, seen.fields[0], seen.seq, findings)
    while row is not None:
        _add_missing_record(scan, row, findings)
        row = next(rows, None)
    _recheck_unindexed(db, scan, findings)
    _check_blanks(scan, findings)
    return scan


def _check_line(scan: LogScan, offset: int, line: bytes, findings: Findings) -> _LineHeader | None:
    """A line, after chain and commitment were checked; None where it is no record."""
    try:
        opened, salt, body = split_line(line)
        header: dict[str, Any] = _parse(opened.decode() + "}")[0]
        seen, prev, refs = _LineHeader(int(header["seq"]), _fields(header)), header["prev"], header["refs"]
    except (ValueError, KeyError, TypeError):
        torn = not line.endswith(b"\n")
        kind, text = ("torn", "a torn last record") if torn else ("log", "no record")
        findings.add(kind, scan.where, f"{text} at byte {offset}", repairable=torn)
        scan.hash = None
        return None
    scan.records += 1
    if scan.hash is not None and (prev != scan.hash or seen.seq != scan.seq + 1):
        text = f"the record at byte {offset} (seq {seen.seq}) does not continue the one before"
        findings.add("chain", scan.where, text)
    if header["kind"] == "redaction":
        scan.redacted_ids.update(refs)
    if not salt.strip():
        scan.blank_ids.add(header["id"])
    elif not _matches_commitment(header["commit"], salt, body):
        findings.add("commitment", scan.where, f"the words of record {header['id']} (byte {offset}) were changed")
    scan.seq, scan.hash = seen.seq, hash_header(opened)
    return seen


def _matches_commitment(commit: str, salt: str, body: bytes) -> bool:
    try:
        return compute_commitment(salt, body) == commit
    except ValueError:
        return False


def _add_difference(scan: LogScan, row: Row, seen: _LineHeader, findings: Findings) -> None:
    columns = (*_COMPARED, "commitment")
    wrong = [name for name, value in zip(columns, seen.fields, strict=True) if row[name] != value] or ["bytes"]
    text = f"the index row of record {seen.fields[0]} (seq {seen.seq}) differs in {', '.join(wrong)}"
    findings.add("index", scan.where, text, repairable=True)


def _add_missing_record(scan: LogScan, row: Row, findings: Findings) -> None:
    text = f"message {row['id']} (seq {row['seq']}) is in the index and not in the log"
    findings.add("index", scan.where, text, repairable=True)


def _add_missing_row(scan: LogScan, message_id: int, seq: int, findings: Findings) -> None:
    text = f"record {message_id} (seq {seq}) is in the log and not in the index"
    findings.add("index", scan.where, text, repairable=True)


def _recheck_unindexed(db: Database, scan: LogScan, findings: Findings) -> None:
    """A running daemon logs before it indexes: a record without a row may have got one since."""
    for message_id, seq, offset in scan.unindexed:
        row = find_message_row(db, message_id)
        if row is None or row["byte_start"] != offset:
            _add_missing_row(scan, message_id, seq, findings)


def _check_blanks(scan: LogScan, findings: Findings) -> None:
    for message_id in sorted(scan.blank_ids - scan.redacted_ids):
        findings.add("commitment", scan.where, f"record {message_id} is blank and no redaction names it")


def list_logged_sessions(log: LogFiles, findings: Findings) -> Iterator[str]:
    """The sessions that have a log; a log whose first line names none is a finding."""
    for path, session in log.list_logs():
        if session is None:
            findings.add("log", f"log/{path.parent.name}/{path.name}", "no record at byte 0")
        else:
            yield session
