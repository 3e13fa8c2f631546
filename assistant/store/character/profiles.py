"""Profiles of people and things. Implements `ProfilesPort` over character.db.

Queries are limited to one scope (I10); a profile and its `UndoableEdit` are written in one transaction; writing is
idempotent by key. The text of a profile in an edit is JSON with one value per line, so that changes can be shown as a
line diff.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from assistant.core.errors import UsageError
from assistant.core.memories import EditAuthor, UndoableEdit
from assistant.core.profiles import Profile, fold_name
from assistant.core.text import lazy_regex
from assistant.store.character.edits import PROFILE_TARGET, EditStore
from assistant.store.database import Database
from assistant.store.rows import class_row, from_values, json_safe, to_row

MAX_PROFILE_BYTES = 64 * 1024
MAX_PROFILE_NAME_CHARACTERS = 200
_LONGEST_READ = 100_000
# The content of a profile, without id and time.
_OWN_FIELDS = ("kind", "name", "aliases", "summary", "attributes")
_SPACELESS = lazy_regex("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

read_profile = class_row(Profile)


class StoredProfiles:
    """Implements `ProfilesPort`."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._edits = EditStore(db)

    def list_profiles(self, scope: str, *, after_name: str = "", limit: int | None = None) -> list[Profile]:
        """Return profiles by name, optionally after a name and limited."""
        return self._db.read_all(
            read_profile,
            "SELECT * FROM entity_profiles WHERE scope = ? AND folded > ? ORDER BY folded, id LIMIT ?",
            (scope, fold_name(after_name), -1 if limit is None else limit),
        )

    def find(self, name: str, scope: str) -> Profile | None:
        """Find a profile by name or alias, ignoring case and accents; names take precedence over aliases."""
        folded = fold_name(name)
        if not folded:
            return None
        aliased = (profile for profile in self.list_profiles(scope) if folded in map(fold_name, profile.aliases))
        return self._find_by_name(folded, scope) or next(aliased, None)

    def find_in_text(self, text: str, scope: str, *, limit: int = 8) -> list[Profile]:
        """Return profiles whose name or alias occurs as a word, in order of occurrence. Only the beginning of a very
        long text is searched."""
        folded = fold_name(text[:_LONGEST_READ])
        rows = self._db.rows(
            "SELECT id, folded, aliases FROM entity_profiles WHERE scope = ? ORDER BY folded, id", (scope,)
        )
        places: list[tuple[int, int]] = []
        for row in rows:
            names = [row["folded"], *map(fold_name, json.loads(row["aliases"]))]
            places += [(place, row["id"]) for place in sorted(_places(names, folded))[:1]]
        profiles = (profile_by_id(self._db, profile_id, scope) for _, profile_id in sorted(places)[:limit])
        return [profile for profile in profiles if profile is not None]

    def save(
        self, profile: Profile, by: EditAuthor, now: datetime, *, key: str | None = None, cycle: int | None = None
    ) -> Profile:
        """Save a profile. Raises `UsageError` for an empty, long or taken name, a profile that is too large, and an
        unknown id."""
        checked = _checked(profile)
        with self._db.write():
            edit = self._edits.find_by_key(key, profile.scope, PROFILE_TARGET)
            if edit is not None:
                return profile_by_id(self._db, _profile_id(edit), profile.scope) or checked
            previous = self._find_previous(checked)
            if previous is not None and profile_to_text(previous) == profile_to_text(checked):
                return previous
            profile_id = write_profile(self._db, checked, previous, now)
            before = profile_to_text(previous) if previous else ""
            target = f"{PROFILE_TARGET}{profile_id}"
            self._edits.add(UndoableEdit(target, checked.scope, by, before, profile_to_text(checked), now, cycle), key)
        return replace(checked, id=profile_id, updated_at=now)

    def remove(self, profile_id: int, scope: str) -> None:
        """Delete a profile with its edits, leaving none of its text in these tables."""
        with self._db.write() as db:
            if not db.execute("DELETE FROM entity_profiles WHERE id = ? AND scope = ?", (profile_id, scope)):
                raise UsageError(f"There is no profile {profile_id}. Nothing was changed.")
            self._edits.delete_all(scope, f"{PROFILE_TARGET}{profile_id}")

    def _find_by_name(self, folded: str, scope: str) -> Profile | None:
        sql = "SELECT * FROM entity_profiles WHERE scope = ? AND folded = ?"
        return self._db.read_one(read_profile, sql, (scope, folded))

    def _find_previous(self, profile: Profile) -> Profile | None:
        """Return the existing version, or None. Raises `UsageError` if the name is taken or the id unknown."""
        same_name = self._find_by_name(fold_name(profile.name), profile.scope)
        if profile.id is None:
            return same_name
        if same_name is not None and same_name.id != profile.id:
            raise UsageError(
                f"There is another profile called {same_name.name}. Nothing was changed; choose another name."
            )
        previous = profile_by_id(self._db, profile.id, profile.scope)
        if previous is None:
            raise UsageError(f"There is no profile {profile.id}. Nothing was changed.")
        return previous


def undo_profile(db: Database, edits: EditStore, edit: UndoableEdit, now: datetime) -> UndoableEdit:
    """Restore the state before an edit. Raises `UsageError` if the profile changed since."""
    profile_id = _profile_id(edit)
    with db.write():
        current = profile_by_id(db, profile_id, edit.scope)
        if current is None or profile_to_text(current) != edit.after:
            raise UsageError(
                f"The profile was changed after change {edit.id}. Nothing was changed; undo the later one first."
            )
        if not edit.before:
            db.execute("DELETE FROM entity_profiles WHERE id = ? AND scope = ?", (profile_id, edit.scope))
        else:
            write_profile(db, profile_from_text(edit.before, edit.scope), current, now)
        return edits.mark_undone(edit, now)


def _profile_id(edit: UndoableEdit) -> int:
    return int(edit.target.removeprefix(PROFILE_TARGET))


def profile_by_id(db: Database, profile_id: int, scope: str) -> Profile | None:
    return db.read_one(read_profile, "SELECT * FROM entity_profiles WHERE id = ? AND scope = ?", (profile_id, scope))


def profile_columns(profile: Profile) -> dict[str, Any]:
    """Return the columns for a profile's content."""
    columns = to_row(profile)
    return {**{name: columns[name] for name in _OWN_FIELDS}, "folded": fold_name(profile.name)}


def write_profile(db: Database, profile: Profile, previous: Profile | None, now: datetime) -> int:
    """Insert or update a profile, within `write()`; returns its id."""
    columns = {**profile_columns(profile), "updated_at": now}
    if previous is None or previous.id is None:
        return db.insert_row("entity_profiles", **columns, created_at=now, scope=profile.scope)
    db.update_rows("entity_profiles", {"id": previous.id}, **columns)
    return previous.id


# ---------------------------------------------------------------------------------------------------------------- text


def profile_to_text(profile: Profile) -> str:
    """Serialise a profile for an edit, one value per line, without id and time."""
    content = {name: getattr(profile, name) for name in _OWN_FIELDS}
    return json.dumps(json_safe(content), ensure_ascii=False, indent=1)


def profile_from_text(text: str, scope: str) -> Profile:
    """Return a profile from the text of an edit, with the scope, which the text does not have."""
    return from_values(Profile, {**json.loads(text), "scope": scope})


def _checked(profile: Profile) -> Profile:
    """Return the normalised profile. Raises `UsageError` if it is invalid."""
    text = profile_to_text(profile)
    if len(text.encode()) > MAX_PROFILE_BYTES:
        raise UsageError(
            f"The profile is too large: {len(text.encode()) // 1024} KB, {MAX_PROFILE_BYTES // 1024} KB fit. Nothing "
            "was changed; shorten it."
        )
    stored = replace(profile_from_text(text, profile.scope), id=profile.id)
    name = " ".join(stored.name.split())
    aliases = tuple(dict.fromkeys(" ".join(alias.split()) for alias in stored.aliases if alias.strip()))
    if not fold_name(name) or any(len(alias) > MAX_PROFILE_NAME_CHARACTERS for alias in (name, *aliases)):
        raise UsageError(f"A name has 1 to {MAX_PROFILE_NAME_CHARACTERS} characters. Nothing was changed.")
    return replace(stored, name=name, aliases=aliases)


def _places(names: Sequence[str], text: str) -> Iterator[int]:
    """Yield where a folded text contains a name as a word; in scripts without spaces anywhere."""
    for name in names:
        if not name or name not in text:
            continue
        start = "" if _SPACELESS.match(name[0]) else r"(?<!\w)"
        end = "" if _SPACELESS.match(name[-1]) else r"(?!\w)"
        match = re.search(f"{start}{re.escape(name)}{end}", text)
        if match:
            yield match.start()
