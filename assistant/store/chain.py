"""One log against its own chain and against the index, read once from end to end.

What always holds: nothing is changed. A line is hashed as it stands, without being parsed beyond its header, so that a
gigabyte takes seconds. Where a line is broken the check goes on behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from sqlite3 import Row
from typing import Any

from assistant.messages import Span
from assistant.store import index
from assistant.store.database import Database
from assistant.store.findings import Findings
from assistant.store.line import GENESIS, commitment, header_hash, split
from assistant.store.log_files import LogFiles

_COMPARED = ("id", "generation", "scope", "kind", "role", "tool_call_id", "turn", "ts")


@dataclass(slots=True)
class Walk:
    """What was read of one log so far."""

    session: str
    where: str
    seq: int = 0
    hash: str | None = GENESIS
    records: int = 0
    bytes: int = 0
    blanked: set[int] = field(default_factory=set)
    redacted: set[int] = field(default_factory=set)
    late: list[Mapping[str, Any]] = field(default_factory=list)


def walk_log(db: Database, log: LogFiles, session: str, findings: Findings) -> Walk:
    """Check chain, commitments and index of a session's log."""
    walk = Walk(session, log.place(session, Span(0, 0)).path)
    rows = db.each("SELECT * FROM messages WHERE session = ? ORDER BY seq", (session,))
    row = next(rows, None)
    for offset, line in log.lines(session):
        walk.bytes += len(line)
        header = _record(walk, offset, line, findings)
        if header is None:
            continue
        while row is not None and row["seq"] < header["seq"]:
            _without_record(walk, row, findings)
            row = next(rows, None)
        if row is not None and row["seq"] == header["seq"]:
            _compare(walk, row, header, offset, len(line), findings)
            row = next(rows, None)
        else:
            walk.late.append({"id": header["id"], "seq": header["seq"], "offset": offset})
    while row is not None:
        _without_record(walk, row, findings)
        row = next(rows, None)
    _look_again(db, walk, findings)
    _blanks(walk, findings)
    return walk


def _record(walk: Walk, offset: int, line: bytes, findings: Findings) -> Mapping[str, Any] | None:
    """The header of a line, after chain and commitment were checked; None where the line is no record."""
    try:
        opened, salt, body = split(line)
        header: dict[str, Any] = json.loads(opened + b"}")
        seq, prev, commit = header["seq"], header["prev"], header["commit"]
    except (ValueError, KeyError, TypeError):
        torn = not line.endswith(b"\n")
        kind, text = ("torn", "a torn last record") if torn else ("log", "no record")
        findings.add(kind, walk.where, f"{text} at byte {offset}", repairable=torn)
        walk.hash = None
        return None
    walk.records += 1
    if walk.hash is not None and (prev != walk.hash or seq != walk.seq + 1):
        findings.add("chain", walk.where, f"the record at byte {offset} (seq {seq}) does not continue the one before")
    if header["kind"] == "redaction":
        walk.redacted.update(header["refs"])
    if not salt.strip():
        walk.blanked.add(header["id"])
    elif not _kept(commit, salt, body):
        findings.add("commitment", walk.where, f"the words of record {header['id']} (byte {offset}) were changed")
    walk.seq, walk.hash = seq, header_hash(opened)
    return header


def _kept(commit: str, salt: str, body: bytes) -> bool:
    try:
        return commitment(salt, body) == commit
    except ValueError:
        return False


def _compare(walk: Walk, row: Row, header: Mapping[str, Any], offset: int, length: int, findings: Findings) -> None:
    wrong = [name for name in _COMPARED if row[name] != header[name]]
    if row["commitment"] != header["commit"]:
        wrong.append("commitment")
    if (row["byte_start"], row["byte_end"]) != (offset, offset + length):
        wrong.append("bytes")
    if wrong:
        text = f"the index row of record {header['id']} (seq {header['seq']}) differs in {', '.join(wrong)}"
        findings.add("index", walk.where, text, repairable=True)


def _without_record(walk: Walk, row: Row, findings: Findings) -> None:
    text = f"message {row['id']} (seq {row['seq']}) is in the index and not in the log"
    findings.add("index", walk.where, text, repairable=True)


def _look_again(db: Database, walk: Walk, findings: Findings) -> None:
    """A running daemon logs before it indexes: a record without a row may have got one since."""
    for header in walk.late:
        row = index.find(db, header["id"])
        if row is None or row["byte_start"] != header["offset"]:
            text = f"record {header['id']} (seq {header['seq']}) is in the log and not in the index"
            findings.add("index", walk.where, text, repairable=True)


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
