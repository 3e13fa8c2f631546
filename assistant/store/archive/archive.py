"""Archives ended generations of the data folder's logs to an object store.

A generation counts as archived (has a row) only after its object was read back and found equal to the log, line by
line; after the row is written, the log is hashed once more, since an erasure may have come between. Databases are
opened for each call, because this runs in worker threads while another thread has them open.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from sqlite3 import Row

from assistant import __version__
from assistant.core.archives import ArchiveEntry, ArchiveNotes, ObjectStore, StoredObject
from assistant.core.errors import ArchiveMissing, ArchiveUnavailable, CorruptStore, UsageError
from assistant.core.messages import LogByteRange
from assistant.core.records import IntegrityProblem, LogRecord
from assistant.core.sessions import session_name
from assistant.store.archive.format import (
    ArchiveCheck,
    ArchiveHeader,
    DamagedArchive,
    build_archive,
    check_archive,
    compress_lines,
    list_archive_rows,
    matches_header,
    read_header,
    read_lines,
    save_archive_row,
)
from assistant.store.database import Database
from assistant.store.home.inventory import discard_fingerprints
from assistant.store.log.format import decode_record, hash_header, split_line
from assistant.store.log.reader import LogFiles, session_folder_name
from assistant.store.rows import class_row, clean_text, format_time, from_values

_PROGRAM = f"nocturne-assistant {__version__}"
_TRIES = 3


_read_entry = class_row(ArchiveEntry)


def _object_names(session: str, generation: int) -> Iterator[str]:
    """Return the name of an archive, and alternatives in case it is taken by an object that must not be replaced."""
    yield f"{session_folder_name(session)}/{generation}.jsonl.gz"
    yield from (f"{session_folder_name(session)}/{generation}-{number}.jsonl.gz" for number in count(2))


class StoredArchive:
    """`home` is the data folder; `open_object_store` is called when the object store is first needed. Methods raise
    `ArchiveUnavailable` if archives cannot be reached, and `StoreError` for faults of the data folder."""

    def __init__(self, home: Path, open_object_store: Callable[[], ObjectStore]) -> None:
        self._home = home
        self._log = LogFiles(home)
        self._open_object_store = open_object_store
        # A partial object has one name per generation.
        self.lock = threading.RLock()

    @cached_property
    def object_store(self) -> ObjectStore:
        return self._open_object_store()

    def open_reader(self) -> closing[Database]:
        """Return script.db, opened for reading, as a context."""
        return closing(Database.open_reader(self._home / "script.db"))

    @contextmanager
    def open_writer(self) -> Iterator[Database]:
        """Within a transaction."""
        discard_fingerprints(self._home)
        with closing(Database.open_unmigrated(self._home / "script.db")) as db, db.write():
            yield db

    # ---------------------------------------------------------------------------------------------------------- storing

    def store(
        self, session: str, generation: int, now: datetime, *, handover: str, summary: str, reason: str
    ) -> ArchiveEntry:
        """Archive a generation and verify it by reading it back. Repeating it finds the existing object, or replaces
        it. Raises `ArchiveUnavailable`, `StoreError`; the generation must not be cleared then."""
        with self.lock:
            self.object_store.remove_partial()
            for _ in range(_TRIES):
                start, check, member = self._read_lines(session, generation)
                if not check.records:
                    return ArchiveEntry(session, generation, "", "", 0, 0, 0, 0, 0, 0, "", False, now, reason)
                header = ArchiveHeader(
                    **check.as_fields(),
                    start=start,
                    reason=clean_text(reason),
                    archived_at=format_time(now),
                    program=_PROGRAM,
                    handover=clean_text(handover),
                    summary=clean_text(summary),
                )
                stored, header = self._put(header, member)
                with self.open_writer() as db:
                    save_archive_row(db, header, stored)
                if self._equals_log(header):
                    return from_values(ArchiveEntry, {**asdict(header), **asdict(stored)})
        raise ArchiveUnavailable(
            f"What was said in {session!r} changed while it was archived. Nothing was cleared; it is tried again later."
        )

    def _read_lines(self, session: str, generation: int) -> tuple[int, ArchiveCheck, bytes]:
        """Return a generation's lines from the log: their offset, their summary, and the compressed bytes. Raises
        `CorruptStore` if the log is damaged there."""
        check = ArchiveCheck(session, generation)
        span, records = self._span(session, generation)
        member = compress_lines(self._checked_lines(check, span)) if records else b""
        if check.problems or check.records != records:
            problem = check.problems[0] if check.problems else f"{check.records} of {records} records are there"
            raise CorruptStore(
                f"The log of {session!r} is not whole in generation {generation}: {problem}. Nothing was archived or "
                "cleared; run `assistant verify`."
            )
        return span.start, check, member

    def _equals_log(self, header: ArchiveHeader) -> bool:
        """Return whether the log has the same lines as an archive, as far as the log goes, or none of them any more."""
        span, records = self._span(header.session, header.generation, header.to_seq)
        digest = hashlib.sha256()
        for offset, line in self._log.iterate_lines(header.session, span.start):
            if offset >= span.end:
                break
            digest.update(line)
        return not records or digest.hexdigest() == header.lines_sha256

    def _span(self, session: str, generation: int, to_seq: int | None = None) -> tuple[LogByteRange, int]:
        """Return the range of a generation in the log, and its number of indexed records."""
        with self.open_reader() as db:
            row = db.row(
                "SELECT min(byte_start) AS start, max(byte_end) AS end, count(*) AS records FROM messages"
                " WHERE session = ? AND generation = ? AND (seq <= ? OR ? IS NULL)",
                (session, generation, to_seq, to_seq),
            )
        if row is None or not row["records"]:
            return LogByteRange(0, 0), 0
        return LogByteRange(row["start"], row["end"]), row["records"]

    def _checked_lines(self, check: ArchiveCheck, span: LogByteRange) -> Iterator[bytes]:
        for offset, line in self._log.iterate_lines(check.session, span.start):
            if offset >= span.end:
                return
            check.add_line(line)
            yield line

    def _put(self, header: ArchiveHeader, member: bytes) -> tuple[StoredObject, ArchiveHeader]:
        """Return the existing object if it has the same content, or the one stored in its place."""
        row = self._find_row(header.session, header.generation)
        if row:
            with suppress(ArchiveUnavailable, DamagedArchive):
                stored, present, check = self._check(row["url"])
                if _says_the_same(present, check, header):
                    return stored, present
        data = build_archive(header, member)
        name, same = self.choose_object_name(header, data, row["url"] if row else "")
        if same is None:
            same = self.object_store.put(name, data, lambda back: require_intact(back, header)), header
        if row and row["url"] != same[0].url:
            with suppress(ArchiveUnavailable):
                self.object_store.remove(row["url"])
        return same

    def choose_object_name(
        self, header: ArchiveHeader, data: bytes, own: str
    ) -> tuple[str, tuple[StoredObject, ArchiveHeader] | None]:
        """Choose the name of an archive, and return the existing object there if its content is the same. An object
        with records that this archive does not have (the data folder was restored to an earlier state and then
        continued differently) keeps its name. `own` is its name in the index, "" for none. Raises `ArchiveUnavailable`,
        also if the name belongs to another data folder."""
        for name in _object_names(header.session, header.generation):
            url = self.object_store.url_of(name)
            if url == own:
                break
            try:
                stored, present, check = self._check(url)
            except (ArchiveMissing, DamagedArchive):
                break
            if _says_the_same(present, check, header):
                return name, (stored, present)
            if any(hash_header(split_line(line)[0]) == present.last_hash for line in read_lines(data)):
                break
            self._require_own(url, present, header)
        return name, None

    def _check(self, url: str) -> tuple[StoredObject, ArchiveHeader, ArchiveCheck]:
        """Raises `ArchiveUnavailable`, `DamagedArchive`."""
        fetched = self.object_store.get(url)
        return fetched.stored, *check_archive(fetched.data)

    def _require_own(self, url: str, present: ArchiveHeader, header: ArchiveHeader) -> None:
        """Raises `ArchiveUnavailable` unless the object at `url` provably belongs to this data folder."""
        with self.open_reader() as db:
            rows = [row for row in list_archive_rows(db) if row["session"] == header.session]
        folder = url.rpartition("/")[0]
        if present.first_hash != header.first_hash and not any(row["url"].rpartition("/")[0] == folder for row in rows):
            raise ArchiveUnavailable(
                f"There is another archive at {url}, as another data folder would put there. Nothing was changed; set "
                "[archive] url to a folder of its own."
            )

    # ---------------------------------------------------------------------------------------------------------- looking

    def find_entry(self, session: str, generation: int) -> ArchiveEntry | None:
        """Return the index entry of an archived generation."""
        row = self._find_row(session, generation)
        return None if row is None else _read_entry(row)

    def _find_row(self, session: str, generation: int) -> Row | None:
        with self.open_reader() as db:
            return db.row("SELECT * FROM archives WHERE session = ? AND generation = ?", (session, generation))

    def list_archives(self, scope: str | None = None) -> list[ArchiveEntry]:
        """Return all archives of a scope, or of all scopes (None), by session, oldest generation first."""
        with self.open_reader() as db:
            return [_read_entry(row) for row in list_archive_rows(db, scope)]

    def list_missing_from_log(self, scope: str | None = None) -> list[ArchiveEntry]:
        """Return archives whose messages are no longer in the log, so that a search does not find them."""
        with self.open_reader() as db:
            rows = [row for row in list_archive_rows(db, scope) if not self._is_logged(db, row)]
        return [_read_entry(row) for row in rows]

    def _is_logged(self, db: Database, row: Row) -> bool:
        place = db.row("SELECT byte_end FROM messages WHERE session = ? AND seq = ?", (row["session"], row["to_seq"]))
        return place is not None and place["byte_end"] <= self._log.size(row["session"])

    def read_notes(self, session: str, generation: int) -> ArchiveNotes:
        """Raises as `read` does."""
        header = self._opened(session, generation)[0]
        return ArchiveNotes(header.handover, header.summary)

    def read_records(self, session: str, generation: int) -> list[LogRecord]:
        """Return the records of an archived generation, oldest first. Raises `UsageError` if it was never archived,
        `ArchiveUnavailable` if it cannot be read or is damaged."""
        header, data = self._opened(session, generation)
        records, start = [], header.start
        try:
            for line in read_lines(data):
                records.append(decode_record(line, start))
                start += len(line)
        except (ValueError, KeyError, TypeError) as error:
            raise _broken(self.require_url(session, generation), error) from None
        return records

    def _opened(self, session: str, generation: int) -> tuple[ArchiveHeader, bytes]:
        url = self.readable_url(session, generation)
        data = self.object_store.get(url).data
        try:
            return read_header(data), data
        except DamagedArchive as error:
            raise _broken(url, error) from None

    def require_url(self, session: str, generation: int) -> str:
        """Return the URL in the index, or the default if the index has lost it. Raises `UsageError` if there is
        none."""
        entry = self.find_entry(session, generation)
        if entry is not None:
            return entry.url
        url = self.object_store.url_of(next(_object_names(session, generation)))
        if generation < 1 or not self.object_store.exists(url):
            raise UsageError(
                f"{session_name(session)} {generation} is not archived. Nothing was changed; `assistant archive list`"
                " shows what is."
            )
        return url

    def readable_url(self, session: str, generation: int) -> str:
        """Return the URL like `require_url`. Raises `ArchiveUnavailable` while an archive still has erased text."""
        row = self._find_row(session, generation)
        if row is not None and row["outdated"]:
            raise ArchiveUnavailable(
                f"{row['url']} still has words that were forgotten, as it could not be rewritten. It cannot be read "
                "until it is: start the assistant, or forget something, when its place can be reached."
            )
        return self.require_url(session, generation)

    # --------------------------------------------------------------------------------------------------------- checking

    def verify(self, session: str, generation: int) -> list[IntegrityProblem]:
        """Return what is wrong with an archive (missing, changed, broken chain or commitments, different from the log);
        empty if it is intact. Raises `UsageError` if it was never archived."""
        url = self.require_url(session, generation)
        row = self._find_row(session, generation)
        try:
            stored, header, check = self._check(url)
        except (ArchiveUnavailable, DamagedArchive) as error:
            return [IntegrityProblem("archive", url, str(error))]
        problems = list(check.problems)
        if (header.session, header.generation) != (session, generation):
            problems.append(f"it is of generation {header.generation} of {header.session!r}")
        if row is not None:
            if (row["bytes"], row["sha256"]) != (stored.bytes, stored.sha256):
                problems.append("other bytes than were put there")
            elif row["lines_sha256"] != header.lines_sha256:
                problems.append("its records are not those that were put there")
        if not self._equals_log(header):
            problems.append("the message log does not say the same; `assistant verify` tells whether it is whole")
        return [IntegrityProblem("archive", url, text) for text in problems]

    def verify_all(self, *, remote: bool) -> list[IntegrityProblem]:
        """Return what is wrong with all indexed archives; with those on other machines only if `remote`."""
        entries = [entry for entry in self.list_archives() if remote or self.object_store.is_local(entry.url)]
        return [problem for entry in entries for problem in self.verify(entry.session, entry.generation)]

    # ---------------------------------------------------------------------------------------------------------- keeping

    def list_outdated_rows(self, scope: str) -> list[Row]:
        """Return the index entries of archives that have to be rewritten, of one scope."""
        with self.open_reader() as db:
            return [row for row in list_archive_rows(db, scope) if row["outdated"]]

    def rebuild(self, session: str, generation: int, now: datetime) -> ArchiveEntry:
        """Rebuild a damaged archive from the log, with the notes in the index. Raises as `store` does, and `UsageError`
        if the log no longer has the records."""
        row = self._find_row(session, generation)
        whole = row is not None and self._span(session, generation, row["to_seq"])[1] == row["records"]
        if row is None or not whole:
            raise UsageError(
                f"The message log does not have what was archived of {session!r} {generation}. Nothing was changed; "
                "`assistant archive restore` brings it back from an archive that is whole."
            )
        return self.store(
            session, generation, now, handover=row["handover"], summary=row["summary"], reason=row["reason"]
        )

    def remove(self, session: str, generation: int) -> None:
        """Delete an archive and its row; succeeds if it is already gone."""
        with self.lock:
            entry = self.find_entry(session, generation)
            if entry is not None:
                self.object_store.remove(entry.url)
                with self.open_writer() as db:
                    db.execute("DELETE FROM archives WHERE session = ? AND generation = ?", (session, generation))

    def remove_partial(self) -> None:
        """Delete partial files of an interrupted attempt in the data folder; those elsewhere are deleted by the next
        `store`. Fast."""
        with self.lock, suppress(OSError):
            # What cannot be listed or removed does no harm; an erasure reports it.
            for part in (self._home / "archive" / ".part").glob("*"):
                with suppress(OSError):
                    part.unlink()


def require_intact(data: bytes, header: ArchiveHeader) -> None:
    """Raises `ArchiveUnavailable` if an object that was read back differs from what was written."""
    try:
        same = matches_header(data, header)
    except DamagedArchive as error:
        raise ArchiveUnavailable(f"The archive came back damaged: {error}. Nothing was cleared.") from None
    if not same:
        raise ArchiveUnavailable("The archive came back other than it was written. Nothing was cleared.")


def _says_the_same(present: ArchiveHeader, check: ArchiveCheck, header: ArchiveHeader) -> bool:
    """Return whether an archive is intact and has the same content as `header`, whenever it was made."""
    alike = replace(present, archived_at=header.archived_at, program=header.program, reason=header.reason) == header
    return alike and not check.problems


def _broken(url: str, error: Exception) -> ArchiveUnavailable:
    return ArchiveUnavailable(f"{url} cannot be read: {error}. Nothing was changed; run `assistant archive verify`.")
