"""Checks one log against its hash chain and the index, in one pass; and collects the findings of any check.

Nothing is changed. Lines are hashed as they are and parsed only up to the end of their header, so a gigabyte takes
seconds. After a broken line the check continues with the next. The first cases of each kind of problem are listed and
the others counted.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from sqlite3 import Row
from typing import Any

from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange
from assistant.core.records import IntegrityProblem
from assistant.store.database import Database
from assistant.store.log.format import GENESIS_HASH, compute_commitment, hash_header, split_line
from assistant.store.log.reader import LogFiles
from assistant.store.log.rebuild import is_padding
from assistant.store.script.index import find_message_row

_MAX_LISTED_PER_KIND = 20


class Findings:
    """The problems a check found; the first of each kind are listed and the others counted."""

    def __init__(self) -> None:
        self._listed: list[IntegrityProblem] = []
        self._counts: Counter[tuple[str, str, bool]] = Counter()

    def add(self, kind: str, where: str, text: str, *, repairable: bool = False) -> None:
        """Add one; of each kind and place only the first few are listed, and the rest are counted."""
        self._counts[kind, where, repairable] += 1
        if self._counts[kind, where, repairable] <= _MAX_LISTED_PER_KIND:
            self._listed.append(IntegrityProblem(kind, where, text, repairable))

    @contextmanager
    def collect_store_errors(self, where: str) -> Iterator[None]:
        """Record errors of a part of the check as findings, so that the other parts continue."""
        try:
            yield
        except StoreError as error:
            self.add("database", where, str(error))

    def problems(self) -> tuple[IntegrityProblem, ...]:
        """The listed ones, then a line for each kind and place that had more."""
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
_MOST_SECONDS_BEHIND, _SECONDS_BETWEEN_CHECKS = 10.0, 0.05

_fields = itemgetter("seq", *_COMPARED, "commit")
_parse = json.JSONDecoder().raw_decode


class LogScan:
    """Checks chain, commitments and index of one session's log, in one pass."""

    def __init__(
        self, db: Database, log: LogFiles, session: str, findings: Findings, is_served: Callable[[], bool]
    ) -> None:
        """`is_served`: whether a daemon runs, whose newest records may not be in the index yet."""
        self.records = 0
        self.bytes = 0
        self.blank_ids: set[int] = set()
        self._db = db
        self._log = log
        self._session = session
        self._findings = findings
        self._is_served = is_served
        self._where = log.log_place(session, LogByteRange(0, 0)).path
        self._seq = 0
        self._hash: str | None = GENESIS_HASH  # of the last header; None if unknown
        self._redacted_ids: set[int] = set()
        self._unindexed: list[tuple[int, int, int]] = []  # (id, seq, offset) of records without a row

    def run(self, last: int | None = None) -> LogScan:
        """Check the whole log, or only its `last` so many records."""
        start = None if last is None else self._db.row(_LAST, (self._session, last - 1))
        if start is not None:
            # Earlier records are not read, so it is unknown what the first one has to continue.
            self._seq, self._hash = start["seq"] - 1, None
        rows = self._db.iterate(_ROWS, (self._session, self._seq + 1))
        row = next(rows, None)
        for offset, line in self._log.iterate_lines(self._session, start["byte_start"] if start is not None else 0):
            self.bytes += len(line)
            fields = self._check_line(offset, line)
            if fields is None:
                continue
            while row is not None and row["seq"] < fields[0]:
                self._add_missing_record(row)
                row = next(rows, None)
            if row is not None and row["seq"] == fields[0]:
                self._compare(row, (*fields, offset, offset + len(line)))
                row = next(rows, None)
            else:
                self._unindexed.append((fields[1], fields[0], offset))
                if len(self._unindexed) > _MAX_RECHECKED:
                    self._recheck_unindexed()
        while row is not None:
            self._add_missing_record(row)
            row = next(rows, None)
        self._recheck_unindexed()
        for message_id in sorted(self.blank_ids - self._redacted_ids):
            self._add("commitment", f"record {message_id} is blank and no redaction names it")
        return self

    def _add(self, kind: str, text: str, *, repairable: bool = False) -> None:
        self._findings.add(kind, self._where, text, repairable=repairable)

    def _check_line(self, offset: int, line: bytes) -> tuple[Any, ...] | None:
        """Check chain and commitment of a line, and return its values in an index row, seq first; None if it is
        invalid."""
        if is_padding(line):
            # A repair named the lost record, and kept the damaged file.
            self._hash = None
            return None
        try:
            opened, salt, body = split_line(line)
            header: dict[str, Any] = _parse(opened.decode() + "}")[0]
            fields, prev, refs = _fields(header), header["prev"], header["refs"]
            seq = int(header["seq"])
        except (ValueError, KeyError, TypeError):
            torn = not line.endswith(b"\n")
            kind, text = ("torn", "a torn last record") if torn else ("log", "no record")
            self._add(kind, f"{text} at byte {offset}", repairable=torn)
            self._hash = None
            return None
        self.records += 1
        if self._hash is not None and (prev != self._hash or seq != self._seq + 1):
            self._add("chain", f"the record at byte {offset} (seq {seq}) does not continue the one before")
        if header["kind"] == "redaction":
            self._redacted_ids.update(refs)
        if not salt.strip():
            self.blank_ids.add(header["id"])
        elif not _matches_commitment(header["commit"], salt, body):
            self._add("commitment", f"the words of record {header['id']} (byte {offset}) were changed")
        self._seq, self._hash = seq, hash_header(opened)
        return (seq, *fields[1:])

    def _compare(self, row: Row, expected: tuple[Any, ...]) -> None:
        if tuple(row) == expected:
            return
        wrong = [name for name, stored, field in zip(row.keys(), row, expected, strict=True) if stored != field]
        names = [name for name in wrong if not name.startswith("byte_")] or ["bytes"]
        text = f"the index row of record {expected[1]} (seq {expected[0]}) differs in {', '.join(names)}"
        self._add("index", text, repairable=True)

    def _add_missing_record(self, row: Row) -> None:
        text = f"message {row['id']} (seq {row['seq']}) is in the index and not in the log"
        self._add("index", text, repairable=True)

    def _recheck_unindexed(self) -> None:
        """Check records without a row again: a running daemon writes the log before the index, and on a busy machine
        the index a while later."""
        deadline = time.monotonic() + _MOST_SECONDS_BEHIND
        while self._unindexed:
            may_follow = time.monotonic() < deadline and self._is_served()
            if not self._find_unindexed() or not may_follow:
                break
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        for message_id, seq, _ in self._unindexed:
            text = f"record {message_id} (seq {seq}) is in the log and not in the index"
            self._add("index", text, repairable=True)
        self._unindexed.clear()

    def _find_unindexed(self) -> list[tuple[int, int, int]]:
        self._unindexed = [
            record
            for record in self._unindexed
            if (row := find_message_row(self._db, record[0])) is None or row["byte_start"] != record[2]
        ]
        return self._unindexed


def _matches_commitment(commit: str, salt: str, body: bytes) -> bool:
    try:
        return compute_commitment(salt, body) == commit
    except ValueError:
        return False


def list_logged_sessions(log: LogFiles, findings: Findings) -> Iterator[str]:
    """Return the sessions that have a log; a log with an invalid first line is a finding."""
    for path, session in log.list_logs():
        if session is None:
            findings.add("log", f"log/{path.parent.name}/{path.name}", "no record at byte 0")
        else:
            yield session
