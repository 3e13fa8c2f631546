"""Errors of SQLite as `StoreError`, with a line for people."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.errors import CorruptStore, StoreError

DATA_KEPT = "What was accepted before is kept"
_FAMILIES = {
    sqlite3.SQLITE_FULL: f"was not written. The disk is full. {DATA_KEPT}; make room, then try again.",
    sqlite3.SQLITE_IOERR: f"was not written. The disk reported an error. {DATA_KEPT}; check it, then try again.",
    sqlite3.SQLITE_READONLY: f"cannot be written. {DATA_KEPT}; make the data folder writable, then try again.",
    sqlite3.SQLITE_CANTOPEN: f"cannot be opened. {DATA_KEPT}; check that the data folder exists and is yours.",
    sqlite3.SQLITE_BUSY: f"was not written. Another process has locked it. {DATA_KEPT}; stop it, or try again.",
    sqlite3.SQLITE_LOCKED: f"was not written. Another process has locked it. {DATA_KEPT}; stop it, or try again.",
    sqlite3.SQLITE_TOOBIG: f"was not written. A text is too long for it. {DATA_KEPT}; send it in parts.",
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_CORRUPT = {*_DAMAGED, sqlite3.SQLITE_CONSTRAINT}
_UNREADABLE = "stop the assistant, then `assistant backup restore NAME --force` (`assistant backup list` names them)."


def explain_error(path: Path, error: sqlite3.Error) -> StoreError:
    family = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if family in _CORRUPT:
        to_do = _UNREADABLE if family in _DAMAGED else "run `assistant verify`."
        return CorruptStore(f"{path}: {error}. Nothing was changed; {to_do}")
    if family in _FAMILIES:
        return StoreError(f"{path} {_FAMILIES[family]}")
    return StoreError(f"{path}: {error}. {DATA_KEPT}; run `assistant verify`.")


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise explain_error(path, error) from error
