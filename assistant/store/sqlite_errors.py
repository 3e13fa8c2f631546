"""Translates SQLite errors to `StoreError`, with a line for people."""

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
# A file with these may be whole: the disk is full or refuses to open or write it, or another process has it.
_REFUSED = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
}
# Sectors that cannot be read any more are damage.
_READING = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
# Python's error for text with invalid bytes; it has no code.
_NO_TEXT = "Could not decode"
# The text of an error may quote a damaged schema, which Python then cannot decode.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_CORRUPT = {*_DAMAGED, sqlite3.SQLITE_CONSTRAINT}
_UNREADABLE = "stop the assistant, then run `assistant verify --repair`: it keeps all that can be read."


def explain_error(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    """Return the error to raise, with words for people: a `CorruptStore` if the file is damaged, else a
    `StoreError`."""
    if isinstance(error, UnicodeDecodeError):
        return CorruptStore(f"{path}: its schema has invalid text. Nothing was changed; {_UNREADABLE}")
    family = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    is_damaged = family in _DAMAGED or str(error).startswith(_NO_TEXT)
    if is_damaged or family in _CORRUPT:
        to_do = _UNREADABLE if is_damaged else "run `assistant verify`."
        return CorruptStore(f"{path}: {error}. Nothing was changed; {to_do}")
    if family in _FAMILIES:
        return StoreError(f"{path} {_FAMILIES[family]}")
    return StoreError(f"{path}: {error}. {DATA_KEPT}; run `assistant verify`.")


def is_refused_by_machine(error: StoreError) -> bool:
    """Return whether the machine refused to open or write a database, which says nothing of what is in its file."""
    code = getattr(error.__cause__, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in _REFUSED and code not in _READING


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """A context that raises SQLite's errors as `explain_error` says."""
    try:
        yield
    except SQLITE_ERRORS as error:
        raise explain_error(path, error) from error


@contextmanager
def unreadable_rows_explained(path: Path) -> Iterator[None]:
    """Report a value that cannot be decoded, for example after a bit flip, as damage."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorruptStore(
            f"{path} is damaged: a row cannot be read ({why}). Nothing was changed; {_UNREADABLE}"
        ) from error
