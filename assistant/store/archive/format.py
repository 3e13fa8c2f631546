"""The format of an archive of one generation: a header, then the log's own lines, compressed.

The same lines and header always give the same bytes. Header and lines are two members of one gzip file, which `gzip -d`
decompresses to JSON lines; so the lines can be compressed while they are read from the log, and the header is made
last. Lines are byte for byte those of the log, so the log's proofs apply to them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from itertools import islice
from sqlite3 import Row
from typing import Any

from assistant.core.archives import StoredObject
from assistant.core.dataclass import dataclass
from assistant.store.database import Database
from assistant.store.log.format import compute_commitment, hash_header, split_line
from assistant.store.rows import dump_json, to_row

ARCHIVE_KIND = "archive"
_VERSION = 1
# Takes half the time of the default level, for 5 % more bytes.
_LEVEL = 4
_MAX_PROBLEMS = 20


class DamagedArchive(ValueError):
    """The object is not a valid archive; the text says why."""


@dataclass
class ArchivedLines:
    """What a header says about its lines; times are as stored."""

    session: str
    generation: int
    scope: str
    records: int
    first_id: int
    last_id: int
    from_seq: int
    to_seq: int
    from_ts: str
    to_ts: str
    prev: str  # the header hash before the first record
    first_hash: str  # of the first record
    last_hash: str  # of the last record
    lines_sha256: str


_LINE_FIELDS = tuple(field.name for field in fields(ArchivedLines))
_NOT_COMPARED = ("session", "generation", "scope", "from_ts", "to_ts")


@dataclass
class ArchiveHeader(ArchivedLines):
    """The first line; times are as stored."""

    reason: str
    archived_at: str
    program: str
    start: int  # byte offset of the first record in the log
    handover: str
    summary: str


class ArchiveCheck(ArchivedLines):
    """Counts and checks log lines of one generation, one by one. `problems` describes the first ones found."""

    def __init__(self, session: str, generation: int) -> None:
        self._digest = hashlib.sha256()
        super().__init__(session, generation, "", 0, 0, 0, 0, 0, "", "", "", "", "", self._digest.hexdigest())
        self.problems: list[str] = []

    def as_fields(self) -> dict[str, Any]:
        """Return the header fields of the lines added so far."""
        return {name: getattr(self, name) for name in _LINE_FIELDS}

    def add_line(self, line: bytes) -> None:
        """Check the next line."""
        self._digest.update(line)
        self.lines_sha256 = self._digest.hexdigest()
        self.records += 1
        try:
            opened, salt, body = split_line(line)
            header: dict[str, Any] = json.loads(opened + b"}")
            session, generation = header["session"], header["generation"]
            self._place(header, hash_header(opened), header["id"], header["seq"], header["prev"])
            if (session, generation) != (self.session, self.generation):
                self._report(f"record {header['id']} is of generation {generation} of {session!r}")
            if salt.strip() and compute_commitment(salt, body) != header["commit"]:
                self._report(f"the words of record {header['id']} were changed")
        except (ValueError, KeyError, TypeError):
            self._report(f"line {self.records} is no record")

    def _place(self, header: dict[str, Any], hashed: str, message_id: int, seq: int, prev: str) -> None:
        if not self.first_hash:
            self.scope, self.prev, self.first_hash, self.from_seq = header["scope"], prev, hashed, seq
            self.from_ts, self.first_id, self.last_id = header["ts"], message_id, message_id
        elif prev != self.last_hash or seq != self.to_seq + 1:
            self._report(f"record {message_id} (seq {seq}) does not continue the one before")
        self.last_hash, self.to_seq, self.to_ts = hashed, seq, header["ts"]
        self.first_id, self.last_id = min(self.first_id, message_id), max(self.last_id, message_id)

    def _report(self, text: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(text)


def compress_lines(lines: Iterable[bytes]) -> bytes:
    """Compress lines to one gzip member, holding one line at a time."""
    target = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=target, mtime=0) as file:
        for line in lines:
            file.write(line)
    return target.getvalue()


def build_archive(header: ArchiveHeader, member: bytes) -> bytes:
    """Return the object; `member` is the result of `compress_lines`."""
    return (
        compress_lines([dump_json({"kind": ARCHIVE_KIND, "v": _VERSION, **asdict(header)}).encode() + b"\n"]) + member
    )


def read_header(data: bytes) -> ArchiveHeader:
    """Raises `DamagedArchive`."""
    for line in islice(_unpacked(data), 1):
        return _parsed(line)
    raise DamagedArchive("it is empty")


def read_lines(data: bytes) -> Iterator[bytes]:
    """Yield the log's lines. Raises `DamagedArchive`, also if only the end is broken."""
    yield from islice(_unpacked(data), 1, None)


def matches_header(data: bytes, header: ArchiveHeader) -> bool:
    """Return whether an object has this header and the lines it describes, byte for byte. Raises `DamagedArchive`."""
    digest, records = hashlib.sha256(), 0
    for line in read_lines(data):
        digest.update(line)
        records += 1
    return (read_header(data), records, digest.hexdigest()) == (header, header.records, header.lines_sha256)


def check_archive(data: bytes) -> tuple[ArchiveHeader, ArchiveCheck]:
    """Check header and lines against each other and return them. Raises `DamagedArchive` if they cannot be read."""
    header = read_header(data)
    check = ArchiveCheck(header.session, header.generation)
    for line in read_lines(data):
        check.add_line(line)
    compared = [name for name in _LINE_FIELDS if name not in _NOT_COMPARED]
    wrong = [name for name in compared if getattr(header, name) != getattr(check, name)]
    if wrong:
        check.problems.append(f"the lines are not what the header says: {', '.join(wrong)}")
    return header, check


def _unpacked(data: bytes) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedArchive(f"it is damaged or cut off ({error})") from None


def _parsed(line: bytes) -> ArchiveHeader:
    try:
        raw = json.loads(line)
        kind, version = raw.pop("kind"), raw.pop("v")
        if (kind, version) != (ARCHIVE_KIND, _VERSION):
            raise DamagedArchive(f"its form ({kind} {version}) is unknown to this version")
        return ArchiveHeader(**raw)
    except DamagedArchive:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedArchive("its first line is no header of an archive") from None


def save_archive_row(db: Database, header: ArchiveHeader, stored: StoredObject) -> None:
    """Within `write()`; replaces an earlier row of the generation."""
    names = db.column_names("archives")
    columns = {name: value for name, value in (to_row(header) | to_row(stored)).items() if name in names}
    db.upsert_row("archives", ("session", "generation"), **columns, outdated=0)


def list_archive_rows(db: Database, scope: str | None = None) -> list[Row]:
    """Return rows by session, oldest generation first; a data folder of an older version has none."""
    if not db.column_names("archives"):
        return []
    return db.rows("SELECT * FROM archives WHERE scope = ? OR ? IS NULL ORDER BY session, generation", (scope, scope))
