"""Words removed from character.db: journal, plans of memory changes, profiles and all that is kept of earlier texts,
to-dos, pins, sleep reports. memory.db is only searched: the memory layer erases memories through its own port.

What always holds: a journal entry is removed whole where nothing of it is left, where it is named, or where it was made
only of erased messages that were named; what superseded it, or was superseded by it, stays. What a profile says only
because of such entries is removed with them, in whatever words. A change that would bring the words back when a sleep
is undone is no longer part of its plan; a plan that waits is made anew from what its entries are then. Texts of
profiles and files lose the same sentences in every version, so edits can still be undone. The journal's full text is
rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from assistant.core.profiles import Profile, ProfileAttribute
from assistant.store.character.edits import PROFILE_TARGET
from assistant.store.character.journal import entry_subject
from assistant.store.character.profiles import profile_columns, profile_from_text, profile_to_text, read_profile
from assistant.store.database import Database, column_names
from assistant.store.erasure.columns import (
    RowChange,
    TextColumns,
    apply_row_changes,
    find_row_changes,
    redact_json,
    scoped_rows,
)
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json

CONTEXT_SYNTHESIS = "context_synthesis"
_COLUMNS = (
    TextColumns("to-dos", "todos", ("text",), goes=True),
    TextColumns("to-dos", "effects", (), ("result",)),
    TextColumns(
        "journal", "consolidated_entry_ids", ("note",), scope="(SELECT scope FROM journal WHERE id = entry_id)"
    ),
    TextColumns("sleep reports", "sleep_cycles", (), ("phases",), scope=None),
)


def find_character_changes(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    """What would be changed, nothing yet."""
    for columns in _COLUMNS:
        yield from find_row_changes(db, columns, plan)
    yield from _pins(db, plan)
    yield from _journal(db, plan)
    yield from _plans(db, plan)
    yield from _profiles(db, plan)
    yield from _edits(db, plan)


def erase_in_character_db(db: Database, plan: ErasurePlan) -> bool:
    """Inside `write()`: whether the journal had something of it. Repeating it changes nothing."""
    changes = list(find_character_changes(db, plan))
    for entry_id in (change.row for change in changes if change.table == "journal" and change.values is None):
        db.execute("UPDATE journal SET superseded_by = NULL WHERE superseded_by = ?", (entry_id,))
        db.execute("DELETE FROM consolidated_entry_ids WHERE entry_id = ?", (entry_id,))
    for memory_id in plan.memories:
        # Other entries of a memory that goes: the next sleep makes a memory of them again.
        db.execute("DELETE FROM consolidated_entry_ids WHERE memory_id = ?", (memory_id,))
    apply_row_changes(db, changes)
    for subject in (*plan.memories, *map(entry_subject, plan.entries)):
        # A memory's id is made of words: who guesses them could prove it.
        db.execute("DELETE FROM plan_subjects WHERE subject = ?", (subject,))
    db.execute("INSERT INTO journal_fts (journal_fts) VALUES ('rebuild')")
    db.execute("INSERT INTO journal_fts (journal_fts) VALUES ('optimize')")
    return any(change.table == "journal" for change in changes)


def find_entries_of_messages(db: Database, plan: ErasurePlan) -> tuple[list[int], list[tuple[int, str]]]:
    """Journal entries of the scope that were made of these messages: ids of those made of them alone, and the others
    with their words. Summaries of conversations are neither."""
    alone, shared = [], []
    for row in scoped_rows(db, "journal", "scope", plan):
        sources = set(json.loads(row["sources"]))
        if row["source_type"] == CONTEXT_SYNTHESIS or not sources & plan.ids:
            continue
        if sources <= plan.ids:
            alone.append(row["id"])
        else:
            shared.append((row["id"], row["content"]))
    return alone, shared


# ------------------------------------------------------------------------------------------------------------ journal


def _journal(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    for row in scoped_rows(db, "journal", "scope", plan):
        if row["id"] in plan.entries:
            yield RowChange("journal", "journal", row["row_number"], None, _line(row["content"]))
        elif plan.wording.matches(row["content"]) or plan.wording.matches(row["tags"]):
            redacted, shown = plan.wording.remove_from_text(row["content"]), plan.wording.excerpt(row["content"])
            # The old key is made of the words: who guesses them could prove it.
            values = {"key": f"forgotten:{row['id']}", "content": redacted, "tags": redact_json(row["tags"], plan)}
            yield RowChange("journal", "journal", row["row_number"], values if redacted else None, shown)


def _plans(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    memory_ids = set(plan.memories)
    for row in scoped_rows(db, "change_plans", "scope", plan):
        body = json.loads(row["body"])
        changes = [change for change in body["changes"] if not _touches(change, memory_ids, plan)]
        entries = [entry for entry in body["entries"] if entry not in plan.entries]
        is_same = (changes, entries) == (body["changes"], body["entries"])
        if is_same and not plan.wording.matches(row["body"]):
            continue
        redacted = plan.wording.remove_from_json(
            {**body, "changes": changes, "entries": entries}, FORGOTTEN_PLACEHOLDER
        )
        values = None if row["state"] == "planned" else {"body": dump_json(redacted)}
        yield RowChange("plans", "change_plans", row["row_number"], values, f"plan {row['id']}")


def _touches(change: dict[str, Any], memory_ids: set[str], plan: ErasurePlan) -> bool:
    ids = {change["memory"]["id"], (change["before"] or {}).get("id")}
    return bool(ids & memory_ids) or plan.wording.matches(dump_json(change))


# ---------------------------------------------------------------------------------------------------- pins, profiles


def _pins(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    for row in scoped_rows(db, "pins", "scope", plan):
        if row["message_id"] in plan.ids:
            yield RowChange("pins", "pins", row["row_number"], None, f"pin {row['id']}")
        elif plan.wording.matches(row["text"]) and (row["message_id"] is None or plan.everywhere):
            redacted = plan.wording.remove_from_text(row["text"])
            values = {"text": redacted} if redacted else None
            yield RowChange("pins", "pins", row["row_number"], values, f"pin {row['id']}")


def _profiles(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    for row in scoped_rows(db, "entity_profiles", "scope", plan):
        worded = any(plan.wording.matches(row[column]) for column in ("name", "aliases", "summary", "attributes"))
        if not worded and not _has_erased_attribute(read_profile(row), plan):
            continue
        redacted = _redact_profile(read_profile(row), plan)
        values = None if redacted is None else profile_columns(redacted)
        yield RowChange("profiles", "entity_profiles", row["row_number"], values, f"profile {row['id']}")


def _redact_profile(profile: Profile, plan: ErasurePlan) -> Profile | None:
    """Without every alias and attribute that has the words, or was learned from what goes; None where the name has
    them."""
    wording = plan.wording
    if wording.matches(profile.name):
        return None
    return replace(
        profile,
        aliases=tuple(alias for alias in profile.aliases if not wording.matches(alias)),
        summary=wording.remove_from_text(profile.summary) if wording.matches(profile.summary) else profile.summary,
        attributes=tuple(
            attribute
            for attribute in profile.attributes
            if not wording.matches(f"{attribute.name}\n{attribute.value}") and not _is_learned_of(attribute, plan)
        ),
    )


def _has_erased_attribute(profile: Profile, plan: ErasurePlan) -> bool:
    return any(_is_learned_of(attribute, plan) for attribute in profile.attributes)


def _is_learned_of(attribute: ProfileAttribute, plan: ErasurePlan) -> bool:
    """Whether it was learned from entries that go, and from no other."""
    return bool(attribute.sources) and set(attribute.sources) <= set(plan.entries)


# -------------------------------------------------------------------------------------------------------------- edits


def _edits(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    for row in scoped_rows(db, "edits", "scope", plan):
        if not any(_has_erased(row["target"], row[column], row["scope"], plan) for column in ("before", "after")):
            continue
        redacted = [_redact_version(row["target"], row[column], row["scope"], plan) for column in ("before", "after")]
        # A change that was about nothing else has nothing to take back.
        is_empty = redacted[0] == redacted[1] or (redacted[1] == "" and row["target"].startswith(PROFILE_TARGET))
        values = None if is_empty else {"before": redacted[0], "after": redacted[1]}
        yield RowChange("earlier versions", "edits", row["row_number"], values, row["target"])


def _has_erased(target: str, text: str, scope: str, plan: ErasurePlan) -> bool:
    """Whether a version has the words, or says what was learned from entries that go."""
    if plan.wording.matches(text):
        return True
    if not (text and plan.entries and target.startswith(PROFILE_TARGET)):
        return False
    return _has_erased_attribute(profile_from_text(text, scope), plan)


def _redact_version(target: str, text: str, scope: str, plan: ErasurePlan) -> str:
    if not _has_erased(target, text, scope, plan):
        return text
    if not target.startswith(PROFILE_TARGET):
        return plan.wording.remove_from_text(text)
    redacted = _redact_profile(profile_from_text(text, scope), plan)
    return "" if redacted is None else profile_to_text(redacted)


def _line(text: str) -> str:
    return " ".join(text.split())[:80]


def find_memories_with_words(db: Database, plan: ErasurePlan) -> list[tuple[str, str]]:
    """Ids and words of memories of the scope that have the words now, or had them before, or are named."""
    if not column_names(db, "memories"):
        return []
    texts: dict[str, str] = {}
    for row in db.iterate("SELECT id, text, payload FROM memories WHERE scope = ?", (plan.scope,)):
        if row["id"] in plan.memories or plan.wording.matches(row["text"]) or plan.wording.matches(row["payload"]):
            texts[row["id"]] = row["text"]
    # Of a memory that is gone, nobody knows whose it was: it goes with whoever names it.
    rows = db.iterate(
        "SELECT h.memory_id, h.old_memory, h.new_memory, m.scope FROM history h"
        " LEFT JOIN memories m ON m.id = h.memory_id WHERE m.scope = ? OR m.scope IS NULL",
        (plan.scope,),
    )
    for row in rows:
        versions = [text for text in (row["old_memory"], row["new_memory"]) if text]
        owned = row["scope"] is not None or plan.scope == "owner"
        if row["memory_id"] in plan.memories or (owned and any(map(plan.wording.matches, versions))):
            texts.setdefault(row["memory_id"], versions[0] if versions else "")
    return list(texts.items())
