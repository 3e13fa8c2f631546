"""Words removed from archives, wherever they are stored.

What always holds: an archive is made anew of its own content, its records blanked as those of the log, so that it
verifies as before; the new object is verified before it replaces the old one. Which archives are affected is marked in
the index in the transaction that removes the words from it (`mark_outdated_archives`), and stays marked until the
object is rewritten: storage that cannot be reached now is tried again later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from sqlite3 import Row

from assistant.core.erasure import ErasureLeftover
from assistant.core.errors import ArchiveMissing, ArchiveUnavailable
from assistant.store.archive.archive import StoredArchive, require_intact
from assistant.store.archive.format import (
    ArchiveCheck,
    ArchiveHeader,
    DamagedArchive,
    build_archive,
    compress_lines,
    list_archive_rows,
    mark_rewritten,
    read_header,
    read_lines,
    save_archive_row,
)
from assistant.store.database import Database
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.log.format import SALT_KEY
from assistant.store.log.redact import build_blank_line, is_blank_line

_AGAIN = "It is tried again at the next start, and when something is forgotten."


def erase_in_archives(archive: StoredArchive, plan: ErasurePlan) -> list[ErasureLeftover]:
    """Rewrite what is marked in the index; what could not be done. A place that does not answer is asked once.
    Raises `StoreError`. Slow: for a worker thread."""
    leftovers: list[ErasureLeftover] = []
    unavailable = ""
    with archive.lock:
        archive.remove_partial()
        for row in archive.list_outdated_rows(plan.scope):
            if unavailable and not archive.object_store.is_local(row["url"]):
                leftovers.append(ErasureLeftover(row["url"], 1, f"not done: {unavailable}"))
                continue
            try:
                _rewrite(archive, row, plan)
            except ArchiveUnavailable as error:
                unavailable = unavailable or ("" if archive.object_store.is_local(row["url"]) else f"{error} {_AGAIN}")
                leftovers.append(ErasureLeftover(row["url"], 1, f"not done: {error} {_AGAIN}"))
            except DamagedArchive as error:
                leftovers.append(
                    ErasureLeftover(row["url"], 1, f"not done: {error}. Remove it, or repair it. {_AGAIN}")
                )
    return leftovers


def _rewrite(archive: StoredArchive, row: Row, plan: ErasurePlan) -> None:
    session, generation = row["session"], row["generation"]
    objects = archive.object_store
    try:
        data = objects.get(row["url"]).data
    except ArchiveMissing:
        # Words that are nowhere need not be taken out; `archive verify` says that it is gone.
        with archive.open_writer() as db:
            mark_rewritten(db, session, generation)
        return
    header, again = _redact(data, plan)
    if again == data:
        with archive.open_writer() as db:
            mark_rewritten(db, session, generation)
        return
    name, _ = archive.choose_object_name(header, again, row["url"])
    stored = objects.put(name, again, lambda back: require_intact(back, header))
    if row["url"] != stored.url:
        objects.remove(row["url"])
    with archive.open_writer() as db:
        save_archive_row(db, header, stored)


def _redact(data: bytes, plan: ErasurePlan) -> tuple[ArchiveHeader, bytes]:
    """The same archive without the words. Raises `DamagedArchive`."""
    before = read_header(data)
    check = ArchiveCheck(before.session, before.generation)
    member = compress_lines(_redacted_lines(data, check, plan))
    header = replace(
        before,
        lines_sha256=check.lines_sha256,
        handover=_redact_text(before.handover, plan),
        summary=_redact_text(before.summary, plan),
    )
    return header, data if header == before else build_archive(header, member)


def _redact_text(text: str, plan: ErasurePlan) -> str:
    return plan.wording.remove_from_text(text) if plan.wording.matches(text) else text


def _redacted_lines(data: bytes, check: ArchiveCheck, plan: ErasurePlan) -> Iterator[bytes]:
    for line in read_lines(data):
        redacted = redact_archived_line(line, plan)
        check.add_line(redacted)
        yield redacted


def find_affected_archives(db: Database, plan: ErasurePlan, ids: Sequence[int] | None = None) -> list[Row]:
    """The archives of the scope that have records (`ids`: of these alone) or words of what is to be forgotten, as far
    as the index can tell; one whose records the home's log no longer has may have any words."""
    places = [(place.session, place.id) for place in plan.records if ids is None or place.id in ids]
    rows = []
    for row in list_archive_rows(db, plan.scope):
        has_record = any(row["session"] == key and row["first_id"] <= id <= row["last_id"] for key, id in places)
        has_words = any(plan.wording.matches(row[column]) for column in ("handover", "summary"))
        may_have_words = plan.everywhere and ids is None and not _is_logged(db, row)
        if has_record or has_words or may_have_words:
            rows.append(row)
    return rows


def mark_outdated_archives(db: Database, plan: ErasurePlan) -> None:
    """Inside `write()`, before the words leave the index: the objects of these rows have to be rewritten."""
    for row in find_affected_archives(db, plan):
        db.execute(
            "UPDATE archives SET outdated = 1 WHERE session = ? AND generation = ?", (row["session"], row["generation"])
        )


def _is_logged(db: Database, row: Row) -> bool:
    sql = "SELECT 1 FROM messages WHERE session = ? AND seq = ?"
    return db.row(sql, (row["session"], row["from_seq"])) is not None


def redact_archived_log(plan: ErasurePlan, data: bytes) -> bytes:
    """The records of an archived log, the forgotten ones blank as in the log itself."""
    return b"".join(redact_archived_line(line, plan) for line in data.splitlines(keepends=True))


def redact_archived_line(line: bytes, plan: ErasurePlan) -> bytes:
    """A line of an archived log; what is no record has its words blanked where they stand."""
    at = line.find(SALT_KEY)
    if at < 0 or not line.endswith(b"\n"):
        return plan.wording.blank_bytes(line)
    try:
        named = json.loads(line[:at] + b"}")["id"] in plan.ids
    except (ValueError, KeyError, TypeError):
        return plan.wording.blank_bytes(line)
    words = plan.everywhere and plan.wording.match_ends(line[at:])
    return build_blank_line(line[:at], len(line)) if (named or words) and not is_blank_line(line) else line
