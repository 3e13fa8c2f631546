"""What one erasure removes, once that was found: stored beside the home's databases until it is done, so that a crash
in between can be recovered. The file has the words; nothing else that outlives the erasure does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from assistant.core.erasure import PhraseMatcher
from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange
from assistant.store.files import TextFile, sync_directory
from assistant.store.rows import dump_json, from_json

PLAN_FILES = "forgetting-*.json"
_ASIDE = f".{PLAN_FILES}.*"


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """A record that is to be blanked, and where it is in the log of `session`."""

    id: int
    session: str
    span: LogByteRange


@dataclass(frozen=True)
class ErasurePlan:
    """What one erasure removes."""

    scope: str
    # With `everywhere`, every copy of them in `scope`; else they stay in other messages, and are cut out of what was
    # made of `records`.
    phrases: tuple[str, ...]
    records: tuple[RecordLocation, ...] = ()  # messages to blank in the logs
    entries: tuple[int, ...] = ()  # ids of the journal
    memories: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # (turn, call id) of the tool runs that these messages asked for
    everywhere: bool = False
    keep_backups: bool = False  # backups with the words stay, and are reported
    note: str = ""  # the name of the file that stores the plan until it is done

    @cached_property
    def wording(self) -> PhraseMatcher:
        return PhraseMatcher(self.phrases)

    @cached_property
    def ids(self) -> frozenset[int]:
        return frozenset(record.id for record in self.records)

    def records_by_session(self) -> dict[str, list[RecordLocation]]:
        by_session: dict[str, list[RecordLocation]] = {}
        for record in self.records:
            by_session.setdefault(record.session, []).append(record)
        return by_session

    def with_changes(self, **changes: Any) -> ErasurePlan:
        return replace(self, **changes)

    def with_memories(self, memory_ids: Iterable[str]) -> ErasurePlan:
        """The same with these memories too."""
        return replace(self, memories=tuple(dict.fromkeys((*self.memories, *memory_ids))))


def write_plan_file(home: Path, plan: ErasurePlan) -> ErasurePlan:
    """Durable before anything is changed; the same, with the name of its note. Raises `StoreError`."""
    taken = {path.name for path in home.glob(PLAN_FILES)}
    number = next(number for number in count(1) if PLAN_FILES.replace("*", str(number)) not in taken)
    noted = replace(plan, note=PLAN_FILES.replace("*", str(number)))
    file = TextFile(home, noted.note)
    waiting = file.pending_file("new")
    waiting.write(dump_json(noted))
    waiting.move_to(file)
    return noted


def read_plan_files(home: Path) -> list[ErasurePlan]:
    """The erasures that were not finished, oldest first; notes that were being written or removed when a crash came are
    removed. Raises `StoreError`, also for a note that is broken."""
    _remove(home, home.glob(_ASIDE))
    return [_read(path) for path in sorted(home.glob(PLAN_FILES), key=lambda path: (len(path.name), path.name))]


def _read(path: Path) -> ErasurePlan:
    try:
        return replace(from_json(ErasurePlan, path.read_bytes()), note=path.name)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} cannot be read: an erasure was begun and not finished. Remove the file, then forget it again."
        ) from error


def is_plan_file(path: Path) -> bool:
    """Whether a file is a note, or one that was being written."""
    return path.match(PLAN_FILES) or path.match(_ASIDE)


def remove_plan_file(home: Path, plan: ErasurePlan) -> None:
    """It is a note no more before its bytes are overwritten. Raises `StoreError`."""
    aside = home / f".{plan.note}.done"
    with _explained(home / plan.note):
        (home / plan.note).replace(aside)
    _remove(home, [aside])


def _remove(home: Path, paths: Iterable[Path]) -> None:
    for path in list(paths):
        with _explained(path):
            with path.open("r+b") as file:
                file.write(b" " * path.stat().st_size)
            path.unlink()
            sync_directory(home)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} was not removed: {error.strerror}. It has words that were to be forgotten; remove it."
        ) from error
