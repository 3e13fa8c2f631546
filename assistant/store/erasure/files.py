"""Removes text from files of the data folder (MEMORY.md and the daily notes, terminal history, torn ends of logs), and
from archives, wherever they are stored.

- A file is replaced in one step or unchanged, also after a crash; repeating it changes nothing. Only files of the scope
  are touched (I10); files people keep in the workspace and elsewhere are their own.
- An archive is rebuilt from its own content, with records blanked as in the log, so that it verifies as before; the new
  object is verified before it replaces the old one. Affected archives are marked in the index, in the transaction that
  removes the text from it (`mark_outdated_archives`), until their object is rewritten: an unreachable storage is
  retried later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from sqlite3 import Row
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.erasure import ErasureLeftover
from assistant.core.errors import ArchiveMissing, ArchiveUnavailable
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.archive.archive import StoredArchive, require_intact
from assistant.store.archive.format import (
    ArchiveCheck,
    ArchiveHeader,
    DamagedArchive,
    build_archive,
    compress_lines,
    list_archive_rows,
    read_header,
    read_lines,
    save_archive_row,
)
from assistant.store.character.memory_files import DAILY_NOTES_FOLDER, MEMORY_FILE
from assistant.store.database import Database
from assistant.store.erasure.byte_search import ByteSearch
from assistant.store.erasure.own_words import is_said
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.files import find_files
from assistant.store.log.format import SALT_KEY
from assistant.store.log.reader import LOG_NAME, session_folder_name
from assistant.store.log.redact import build_blank_line, is_blank_line, read_plain_or_gzip, rewrite_plain_or_gzip

CHAT_HISTORY_FILE = "chat_history"
_EMPTY_SECTION = re.compile(r"(?m)^(#{1,6} [^\n]*)\n\s*(?=^#{1,6} |\Z)")
_ENTRY = re.compile(rb"(?m)^\n?# [^\n]*\n(?:\+[^\n]*\n?)*")


@dataclass(frozen=True, slots=True)
class ErasableFile:
    """A file that may have the text; `change` returns its new content."""

    place: str
    path: Path
    change: Callable[[bytes], bytes]

    def has_words(self) -> bool:
        """Return whether the file has the text. Raises `StoreError` if it cannot be read."""
        data = read_plain_or_gzip(self.path)
        return self.change(data) != data

    def erase(self) -> None:
        """Rewrite the file. Raises `StoreError`, with the file unchanged."""
        rewrite_plain_or_gzip(self.path, self.change)


def list_erasable_files(
    home: Path, sessions: Sequence[str], plan: ErasurePlan, archived: Collection[str]
) -> list[ErasableFile]:
    """Return the scope's own files, and those of its sessions, except for indexed archives (`archived`, relative to the
    data folder), which are rewritten separately."""
    own = plan.scope == OWNER_SCOPE
    days = home / DAILY_NOTES_FOLDER if own else home / DAILY_NOTES_FOLDER / session_folder_name(plan.scope)
    files = [ErasableFile("memory files", path, partial(_without, plan)) for path in find_files(days, "*.md")]
    if own:
        memory, damaged = home / MEMORY_FILE, home / f"{MEMORY_FILE}.damaged"
        files.insert(0, ErasableFile("memory files", memory, partial(_without, plan)))
        files.insert(1, ErasableFile("memory files", damaged, plan.wording.blank_bytes))
        files.append(
            ErasableFile("lines typed in the terminal", home / CHAT_HISTORY_FILE, partial(_typed_without, plan))
        )
    for session in sessions:
        folder = session_folder_name(session)
        torn = find_files(home / "log" / folder, f"{LOG_NAME}.torn-*")
        files += [ErasableFile("damaged ends of the message log", path, plan.wording.blank_bytes) for path in torn]
        stray = [
            path
            for path in find_files(home / "archive" / folder, "*.jsonl*")
            if path.relative_to(home).as_posix() not in archived
        ]
        files += [ErasableFile("archives", path, partial(redact_archived_log, plan)) for path in stray]
    return files


def _without(plan: ErasurePlan, data: bytes) -> bytes:
    """Return MEMORY.md or daily notes without the text, and without headings below which nothing is left: they tell
    what kind of thing was forgotten."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    left = plan.wording.remove_from_text(text)
    if left == text:
        return data
    empty = {match[1] for match in _EMPTY_SECTION.finditer(text)}
    return _EMPTY_SECTION.sub(lambda match: match[0] if match[1] in empty else "", left).encode()


def _typed_without(plan: ErasurePlan, data: bytes) -> bytes:
    """Return terminal history without affected entries: a time, then the lines that were typed, each after a plus
    sign."""

    def remaining(entry: re.Match[bytes]) -> bytes:
        typed = b"\n".join(line[1:] for line in entry[0].splitlines() if line.startswith(b"+"))
        return b"" if plan.wording.match_ends(typed) else entry[0]

    return _ENTRY.sub(remaining, data)


# ---------------------------------------------------------------------------------------------------------- archives

_AGAIN = "It is tried again at the next start, and when something is forgotten."


def erase_in_archives(archive: StoredArchive, plan: ErasurePlan) -> list[ErasureLeftover]:
    """Rewrite the archives marked in the index; return what could not be done. A storage that does not answer is tried
    once. Raises `StoreError`. Slow: call it in a worker thread."""
    leftovers: list[ErasureLeftover] = []
    unavailable = ""
    with archive.lock:
        archive.remove_partial()
        for row in archive.list_outdated_rows(plan.scope):
            is_local = archive.object_store.is_local(row["url"])
            why = "" if is_local else unavailable
            try:
                if not why:
                    _rewrite(archive, row, plan)
            except ArchiveUnavailable as error:
                why = f"{error} {_AGAIN}"
                unavailable = unavailable if is_local else why
            except DamagedArchive as error:
                why = f"{error}. Remove it, or repair it. {_AGAIN}"
            if why:
                leftovers.append(ErasureLeftover(row["url"], 1, f"not done: {why}"))
    return leftovers


def _rewrite(archive: StoredArchive, row: Row, plan: ErasurePlan) -> None:
    objects = archive.object_store
    try:
        redacted = _redact(objects.get(row["url"]).data, plan)
    except ArchiveMissing:
        # Nothing to erase in a missing object; `archive verify` reports that it is gone.
        redacted = None
    if redacted is None:
        with archive.open_writer() as db:
            _mark_outdated(db, row, 0)
        return
    header, data = redacted
    name, _ = archive.choose_object_name(header, data, row["url"])
    stored = objects.put(name, data, lambda back: require_intact(back, header))
    if row["url"] != stored.url:
        objects.remove(row["url"])
    with archive.open_writer() as db:
        save_archive_row(db, header, stored)


def _redact(data: bytes, plan: ErasurePlan) -> tuple[ArchiveHeader, bytes] | None:
    """Return the archive without the text; None if it has none. Raises `DamagedArchive`."""
    before = read_header(data)
    check = ArchiveCheck(before.session, before.generation)
    member = compress_lines(_redacted_lines(data, check, plan))
    header = replace(
        before,
        lines_sha256=check.lines_sha256,
        handover=plan.retelling.remove_from_text(before.handover),
        summary=plan.retelling.remove_from_text(before.summary),
    )
    return None if header == before else (header, build_archive(header, member))


def _redacted_lines(data: bytes, check: ArchiveCheck, plan: ErasurePlan) -> Iterator[bytes]:
    for line in read_lines(data):
        redacted = redact_archived_line(line, plan)
        check.add_line(redacted)
        yield redacted


def search_archives(
    archive: StoredArchive, plan: ErasurePlan, failed: Collection[str]
) -> tuple[list[ErasureLeftover], int]:
    """Return archives with records of the plan that still have the text, or cannot be searched, and the number of
    archives read. Searches those that a search of files in the data folder cannot read, because they are elsewhere or
    encrypted, except the `failed` ones. Slow: call it in a worker thread."""
    objects, search = archive.object_store, ByteSearch(plan.without_shared_sentences())
    leftovers, searched = [], 0
    with archive.open_reader() as db:
        rows = [row for row in find_affected_archives(db, plan, plan.ids) if row["url"] not in failed]
    for row in rows:
        if objects.is_local(row["url"]) and not row["encrypted"]:
            continue
        try:
            count, why = search.count([objects.get(row["url"]).data]), "not done: forget it again"
            searched += 1
        except ArchiveMissing:
            continue
        except (ArchiveUnavailable, DamagedArchive) as error:
            count, why = 1, f"not searched: {error}"
        if count:
            leftovers.append(ErasureLeftover(row["url"], count, why))
    return leftovers, searched


def find_affected_archives(db: Database, plan: ErasurePlan, ids: Collection[int] | None = None) -> list[Row]:
    """Return archives of the scope that have records (`ids`: only these) or text to erase, as far as the index shows.
    An archive whose records are no longer in the log may have any text."""
    places = [(place.session, place.id) for place in plan.records if ids is None or place.id in ids]
    rows = []
    for row in list_archive_rows(db, plan.scope):
        has_record = any(row["session"] == key and row["first_id"] <= id <= row["last_id"] for key, id in places)
        has_words = any(plan.retelling.matches(row[column]) for column in ("handover", "summary"))
        may_have_words = bool(plan.unique) and ids is None and not _is_logged(db, row)
        if has_record or has_words or may_have_words:
            rows.append(row)
    return rows


def mark_outdated_archives(db: Database, plan: ErasurePlan) -> None:
    """Within `write()`, before the text is removed from the index: mark the archives to rewrite."""
    for row in find_affected_archives(db, plan):
        _mark_outdated(db, row, 1)


def _mark_outdated(db: Database, row: Row, outdated: Literal[0, 1]) -> None:
    db.update_rows("archives", {"session": row["session"], "generation": row["generation"]}, outdated=outdated)


def _is_logged(db: Database, row: Row) -> bool:
    sql = "SELECT 1 FROM messages WHERE session = ? AND seq = ?"
    return db.row(sql, (row["session"], row["from_seq"])) is not None


def redact_archived_log(plan: ErasurePlan, data: bytes) -> bytes:
    """Return an archived log with the erased records blanked as in the log."""
    return b"".join(redact_archived_line(line, plan) for line in data.splitlines(keepends=True))


def redact_archived_line(line: bytes, plan: ErasurePlan) -> bytes:
    """Return a line of an archived log; in an invalid line the text itself is blanked."""
    at = line.find(SALT_KEY)
    if at < 0 or not line.endswith(b"\n"):
        return plan.wording.blank_bytes(line)
    try:
        named = json.loads(line[:at] + b"}")["id"] in plan.ids
    except (ValueError, KeyError, TypeError):
        return plan.wording.blank_bytes(line)
    goes = (named or is_said(line[at:], plan.unique)) and not is_blank_line(line)
    return build_blank_line(line[:at], len(line)) if goes else line
