"""Removes text from character.db. Memories are erased by the memory layer.

A journal entry is deleted if nothing of it is left, if it was named, or if it was made only of named erased messages;
entries that superseded it, or were superseded by it, stay. What a profile says only because of such entries is removed
with them, however it is worded. A change that would restore the text when a sleep cycle is undone is removed from its
plan; a pending plan is made again from the remaining entries. Texts of profiles and files lose the same sentences in
every version, so edits can still be undone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from sqlite3 import Row
from typing import Any

from assistant.core.profiles import Profile
from assistant.store.character.edits import PROFILE_TARGET
from assistant.store.character.journal import entry_subject
from assistant.store.character.profiles import profile_columns, profile_from_text, profile_to_text, read_profile
from assistant.store.database import Database
from assistant.store.erasure.own_words import find_said, is_said_in_json, remove_said
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.word_tables import (
    Change,
    RowChange,
    WordTable,
    apply_changes,
    find_changes,
    redact_json,
    words_in,
)
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json

RANGE_ENTRIES = ("context_synthesis", "compaction")
"""Journal entries made of a whole range of messages, whose sources are its first and its last."""


def find_character_changes(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    """Return the changes to make; changes nothing."""
    return find_changes(db, plan, _CHARACTER_TABLES)


def find_journal_changes(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    """Return those changes of `find_character_changes` that are in the journal, for `changed_entries`."""
    return find_changes(db, plan, (_JOURNAL,))


def erase_in_character_db(db: Database, plan: ErasurePlan) -> bool:
    """Erase within `write()`; return whether the journal had something of it."""
    changes = list(find_character_changes(db, plan))
    for entry_id in (entry for entry, left in changed_entries(changes).items() if not left):
        db.execute("UPDATE journal SET superseded_by = NULL WHERE superseded_by = ?", (entry_id,))
        db.execute("DELETE FROM consolidated_entry_ids WHERE entry_id = ?", (entry_id,))
    for memory_id in plan.memories:
        # Other entries of a deleted memory: the next sleep cycle makes a memory of them again.
        db.execute("DELETE FROM consolidated_entry_ids WHERE memory_id = ?", (memory_id,))
    apply_changes(db, changes)
    for subject in (*plan.memories, *map(entry_subject, plan.entries)):
        # A memory's id is derived from its text, so a guess of the text could be confirmed.
        db.execute("DELETE FROM plan_subjects WHERE subject = ?", (subject,))
    return any(change.table == "journal" for change in changes)


def changed_entries(changes: Iterable[RowChange]) -> dict[int, str]:
    """Return what is left of the changed journal entries, by id; "" for deleted ones."""
    of_journal = (change for change in changes if change.table == "journal")
    return {change.row: (change.values or {}).get("content", "") for change in of_journal}


def _journal_entry(row: Row, plan: ErasurePlan) -> Change | None:
    content = row["content"]
    if row["id"] in plan.entries:
        return None, " ".join(content.split())[:80]
    retells = row["source_type"] in RANGE_ENTRIES or not plan.ids.isdisjoint(json.loads(row["sources"]))
    wording = plan.retelling if retells else plan.wording
    if not (wording.matches(content) or plan.wording.matches(row["tags"])):
        return None
    redacted = wording.remove_from_text(content)
    # The old key is derived from the text, so a guess of the text could be confirmed.
    values = {"key": f"forgotten:{row['id']}", "content": redacted, "tags": redact_json(row["tags"], plan.wording)}
    return values if redacted else None, wording.excerpt(content)


def _change_plan(row: Row, plan: ErasurePlan) -> Change | None:
    body = json.loads(row["body"])
    changes = [change for change in body["changes"] if not _is_about(change, plan)]
    entries = [entry for entry in body["entries"] if entry not in plan.entries]
    is_same = (changes, entries) == (body["changes"], body["entries"])
    if is_same and not is_said_in_json(row["body"], plan.wording):
        return None
    redacted = remove_said({**body, "changes": changes, "entries": entries}, plan.wording, FORGOTTEN_PLACEHOLDER)
    return None if row["state"] == "planned" else {"body": dump_json(redacted)}, ""


def _is_about(change: dict[str, Any], plan: ErasurePlan) -> bool:
    ids = {change["memory"]["id"], (change["before"] or {}).get("id")}
    return not ids.isdisjoint(plan.memories) or any(map(plan.wording.matches, find_said(change)))


def _pin(row: Row, plan: ErasurePlan) -> Change | None:
    shown = plan.wording.excerpt(row["text"])
    if row["message_id"] in plan.ids:
        return None, shown
    if (plan.wording if row["message_id"] is None else plan.unique).matches(row["text"]):
        redacted = plan.wording.remove_from_text(row["text"])
        return {"text": redacted} if redacted else None, shown
    return None


def _profile(row: Row, plan: ErasurePlan) -> Change | None:
    profile = read_profile(row)
    redacted = _redact_profile(profile, plan)
    if redacted == profile:
        return None
    return None if redacted is None else profile_columns(redacted), profile.name


def _redact_profile(profile: Profile, plan: ErasurePlan) -> Profile | None:
    """Return a profile without the aliases and attributes that have the text, or were learned only from deleted
    entries; None if its name has the text."""
    wording = plan.wording
    if wording.matches(profile.name):
        return None
    return replace(
        profile,
        aliases=tuple(alias for alias in profile.aliases if not wording.matches(alias)),
        summary=plan.retelling.remove_from_text(profile.summary),
        attributes=tuple(
            attribute
            for attribute in profile.attributes
            if not wording.matches(f"{attribute.name}\n{attribute.value}")
            and not (attribute.sources and set(attribute.sources) <= set(plan.entries))
        ),
    )


def _edit(row: Row, plan: ErasurePlan) -> Change | None:
    is_profile = row["target"].startswith(PROFILE_TARGET)
    before, after = (_redact_version(row, column, plan) for column in ("before", "after"))
    if (before, after) == (row["before"], row["after"]):
        return None
    # A change about nothing else has nothing left to undo.
    is_empty = before == after or (after == "" and is_profile)
    shown = "" if is_profile else row["target"].partition(":")[2]
    return None if is_empty else {"before": before, "after": after}, shown


def _redact_version(row: Row, column: str, plan: ErasurePlan) -> str:
    text: str = row[column]
    if not row["target"].startswith(PROFILE_TARGET):
        return plan.wording.remove_from_text(text)
    if not text or not (plan.entries or plan.retelling.matches(text)):
        return text
    profile = profile_from_text(text, row["scope"])
    redacted = _redact_profile(profile, plan)
    if redacted == profile:
        return text
    return "" if redacted is None else profile_to_text(redacted)


_JOURNAL = WordTable("journal", "journal", _journal_entry)
_CHARACTER_TABLES = (
    WordTable("to-dos", "todos", words_in("text", "list", goes=True)),
    WordTable("to-dos", "effects", words_in(jsons=("result",))),
    WordTable(
        "journal", "consolidated_entry_ids", words_in("note"), scope="(SELECT scope FROM journal WHERE id = entry_id)"
    ),
    WordTable("sleep reports", "sleep_cycles", words_in(jsons=("phases",)), scope=None),
    WordTable("pins", "pins", _pin),
    _JOURNAL,
    WordTable("what sleep changed", "change_plans", _change_plan),
    WordTable("profiles", "entity_profiles", _profile),
    WordTable("earlier versions of files and profiles", "edits", _edit),
)
