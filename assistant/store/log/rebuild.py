"""Rebuilds a damaged log from its remaining lines and from copies in backups and archives.

Lines are never changed. Each must prove itself by its commitment, or be blanked; records named by a redaction stay
blank even if a copy has their content. Lines are written in the order of their numbers, at the offsets in the index,
with padding where one is lost. The new file replaces the damaged one in one step; the damaged one is kept next to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import LogByteRange
from assistant.core.plain_files import open_own_file
from assistant.store.files import make_directory, sync, sync_directory
from assistant.store.home.repair_files import keep_file
from assistant.store.log.format import compute_commitment, decode_record, hash_header, split_line
from assistant.store.log.reader import LOG_NAME, LogFiles
from assistant.store.log.redact import build_blank_line, is_blank_line
from assistant.store.rows import format_time

_BLANKS = b" " * (1 << 16)


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """What the index stores about a record."""

    id: int
    seq: int
    span: LogByteRange
    commitment: str
    said: tuple[str, str, str]  # kind, role and time, as stored


@dataclass(frozen=True, slots=True)
class _Line:
    """A proven line and its position."""

    seq: int
    id: int
    commit: str
    path: Path
    span: LogByteRange
    is_blank: bool
    refs: tuple[int, ...]  # ids it redacts
    header_hash: int  # a number computed from it
    prev: int  # the same number of the previous record
    said: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class RebuiltLog:
    """The result of rebuilding a log."""

    path: Path
    restored: Mapping[str, int] = field(default_factory=dict)  # recovered records by the name of their source
    aside: Path | None = None  # path of the damaged file


@dataclass(frozen=True, slots=True)
class LogCopy:
    """Logs in a backup or in archives, and the name people know it by."""

    log: LogFiles
    name: str


class LogCopies:
    """Copies of the logs, best first. `newest`, from the newest backup, is always read, since it may have records
    nothing else has. The `others` are unpacked one after the other, each once, while records are missing."""

    def __init__(self, newest: LogCopy | None = None, others: Iterable[LogCopy] = ()) -> None:
        self.newest = newest
        self._unpacked: list[LogCopy] = []
        self._others = iter(others)

    def others(self) -> Iterator[LogCopy]:
        """Yield the other copies again each time; those not unpacked yet are unpacked when their turn comes."""
        yield from self._unpacked
        for copy in self._others:
            self._unpacked.append(copy)
            yield copy


def is_padding(line: bytes) -> bool:
    """Return whether a line is only padding in place of a lost record."""
    return not line.strip()


def write_padding(file: BinaryIO, length: int) -> None:
    """Write padding of so many bytes."""
    while length > 0:
        size = min(length, len(_BLANKS))
        file.write(_BLANKS[: size - 1] + b"\n")
        length -= size


def rebuild_log(log: LogFiles, session: str, known: Sequence[KnownRecord], copies: LogCopies, kept: Path) -> RebuiltLog:
    """Rebuild a log. Raises `StoreError`, with the log unchanged. Writes nothing if nothing would change."""
    path = log.path(session)
    own, is_damaged = _prove_lines(path, session)
    lines = _Lines(own, known)
    own_lines = dict(lines.by_seq)
    if copies.newest is not None:
        lines.take_from(copies.newest, session)
    others = copies.others()
    while lines.lack_any() and (copy := next(others, None)) is not None:
        lines.take_from(copy, session)
    lines.drop_unproved()
    found = lines.by_seq
    restored = Counter(lines.sources[line.path] for seq, line in found.items() if line is not own_lines.get(seq))
    plan = _plan(found, {record.seq: record.span for record in known})
    size = path.stat().st_size if path.exists() else 0
    in_place = all(line.path == path and line.span.start == start for start, line in plan)
    if not is_damaged and in_place and not restored and found.keys() >= own_lines.keys():
        # A torn end is handled when the log is opened.
        return RebuiltLog(path)
    if not plan and not size:
        return RebuiltLog(path)
    return RebuiltLog(path, restored, _write(log.home, path, plan, kept))


class _Lines:
    """The proven lines of a session by number: its own, then those from copies."""

    def __init__(self, own: Sequence[_Line], known: Sequence[KnownRecord]) -> None:
        self._commitments = {record.seq: record.commitment for record in known}
        self._said = {record.seq: record.said for record in known}
        self.sources: dict[Path, str] = {}
        self.by_seq: dict[int, _Line] = {}
        for line in own:
            if line.seq not in self.by_seq or self._commitments.get(line.seq) == line.commit:
                self.by_seq[line.seq] = line

    def take_from(self, copy: LogCopy, session: str) -> None:
        """Add missing lines from a copy, if it is of the same log."""
        lines, path = self.by_seq, copy.log.path(session)
        copied, _ = _prove_lines(path, session)
        if any(lines[line.seq].commit != line.commit for line in copied if line.seq in lines):
            return
        self.sources[path] = copy.name
        for line in copied:
            # Erased records stay erased.
            if line.seq in lines:
                if line.is_blank and not lines[line.seq].is_blank:
                    lines[line.seq] = line
            elif line.is_blank or self._commitments.get(line.seq, line.commit) == line.commit:
                lines[line.seq] = line
        for seq in _with_damaged_header(lines, self._said):
            same = [line for line in copied if line.seq == seq and line.header_hash == lines[seq + 1].prev]
            if same:
                lines[seq] = same[0]

    def lack_any(self) -> bool:
        """Return whether a copy may have a line that is missing."""
        last = max((*self.by_seq, *self._commitments), default=0)
        return len(self.by_seq) < last or bool(_with_damaged_header(self.by_seq, self._said))

    def drop_unproved(self) -> None:
        """Drop lines without proof; their records are logged again from other sources."""
        for seq in _with_damaged_header(self.by_seq, self._said).keys() & self._commitments.keys():
            del self.by_seq[seq]


def _prove_lines(path: Path, session: str) -> tuple[list[_Line], bool]:
    """Return the proven lines of a log, and whether there are others, except for a torn end."""
    lines, is_damaged, start = [], False, 0
    try:
        with open_own_file(path, 1 << 20) as file:
            for data in file:
                line = _prove(path, session, start, data)
                if line is not None:
                    lines.append(line)
                is_damaged |= line is None and not is_padding(data) and data.endswith(b"\n")
                start += len(data)
    except FileNotFoundError:
        return [], False
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error
    return lines, is_damaged


def _prove(path: Path, session: str, start: int, data: bytes) -> _Line | None:
    try:
        opened, salt, body = split_line(data)
        # What a reader needs of it is there: where the next record is lost, nothing else proves a header.
        record = decode_record(data, start)
        blank = not salt.strip()
        if record.session != session or not (blank or compute_commitment(salt, body) == record.commit):
            return None
        refs = record.refs if record.kind == "redaction" else ()
        said = record.kind, record.role, format_time(record.ts)
        # Short, and computed from the text, since a flipped bit may also turn a letter into a capital or a digit.
        links = hash(hash_header(opened)), hash(record.prev)
        return _Line(int(record.seq), int(record.id), record.commit, path, record.span, blank, refs, *links, said)
    except (ValueError, KeyError, TypeError):
        return None


def _with_damaged_header(lines: Mapping[int, _Line], known: Mapping[int, tuple[str, str, str]]) -> dict[int, _Line]:
    """Return lines whose content is proven, but whose header does not match the next record, although that one is
    continued or the index says otherwise: only the chain proves a header."""
    damaged = {}
    for seq, line in lines.items():
        after, last = lines.get(seq + 1), lines.get(seq + 2)
        follows = after is None or after.prev == line.header_hash
        is_continued = after is not None and (last is None or last.prev == after.header_hash)
        if not follows and (is_continued or known.get(seq, line.said) != line.said):
            damaged[seq] = line
    return damaged


def _plan(lines: Mapping[int, _Line], spans: Mapping[int, LogByteRange]) -> list[tuple[int, _Line]]:
    """Assign each line its offset."""
    plan, end = [], 0
    for seq in sorted(lines):
        line = lines[seq]
        length = line.span.end - line.span.start
        span = spans.get(seq, line.span)
        # If lines would overlap, the offsets are not from one log, so lines are placed in the order of their numbers.
        start = max(end, span.start) if span.end - span.start == length else end
        plan.append((start, line))
        end = start + length
    return plan


def _write(home: Path, path: Path, plan: Sequence[tuple[int, _Line]], kept: Path) -> Path | None:
    """Replace the file; return where the damaged one is kept."""
    redacted = {id_ for _, line in plan for id_ in line.refs}
    fresh = path.with_name(f".{LOG_NAME}.rebuilt")
    try:
        make_directory(path.parent, home=home)
        with fresh.open("wb") as file:
            fresh.chmod(0o600)
            end = 0
            for start, line in plan:
                write_padding(file, start - end)
                file.write(_read(line, redacted))
                end = start + line.span.end - line.span.start
            file.flush()
            sync(file.fileno())
        aside = keep_file(home, path, kept) if path.exists() else None
        fresh.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path} was not written again: {error.strerror}. It is as it was; make room or repair the disk, then "
            "repeat this."
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return aside


def _read(line: _Line, redacted: set[int]) -> bytes:
    with open_own_file(line.path) as file:
        file.seek(line.span.start)
        data = file.read(line.span.end - line.span.start)
    if line.id in redacted and not is_blank_line(data):
        try:
            return build_blank_line(split_line(data)[0], len(data))
        except (ValueError, CorruptStore):
            return data
    return data
