"""Words taken out of character.db: journal, plans of changes, profiles and all that is kept of earlier texts, to-dos,
pins, sleep reports.

What always holds: an entry of the journal goes whole where nothing of it is left, where it is named, or where it was
made of forgotten messages alone that were named; what superseded it, or was superseded, stays. What a profile says by
such entries alone goes with them, in whatever words. A change that would
bring the words back when a sleep is undone is no longer part of its plan; a plan that waits is made anew from what its
entries are then. Texts of profiles and files lose the same sentences in every version, so that edits can still be
undone. The journal's full text is made anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from sqlite3 import Row
from typing import Any

from assistant.core.profiles import Profile, ProfileAttribute, fold_name
from assistant.store.cells import Cells, Change, carry_out, changes, columns_of, scoped_rows, without_json
from assistant.store.database import Database
from assistant.store.edits import PROFILE
from assistant.store.encoding import FORGOTTEN_PLACEHOLDER, dump_json
from assistant.store.marked import Marked
from assistant.store.plan_form import entry_subject
from assistant.store.profiles import as_text, from_text

SYNTHESIS = "context_synthesis"
_CELLS = (
    Cells("to-dos", "todos", ("text",), goes=True),
    Cells("to-dos", "effects", (), ("result",)),
    Cells("journal", "consolidated_entry_ids", ("note",), scope="(SELECT scope FROM journal WHERE id = entry_id)"),
    Cells("sleep reports", "sleep_cycles", (), ("phases",), scope=None),
)


def character_changes(db: Database, marked: Marked) -> Iterator[Change]:
    """What would be changed, nothing yet."""
    for cells in _CELLS:
        yield from changes(db, cells, marked)
    yield from _pins(db, marked)
    yield from _journal(db, marked)
    yield from _plans(db, marked)
    yield from _profiles(db, marked)
    yield from _edits(db, marked)


def forget_in_character(db: Database, marked: Marked) -> bool:
    """Inside `write()`: whether the journal had something of it. Repeating it changes nothing."""
    found = list(character_changes(db, marked))
    _let_go(db, [change.row for change in found if change.table == "journal" and change.values is None])
    _pend_again(db, marked)
    carry_out(db, found)
    _no_subjects(db, marked)
    if columns_of(db, "journal_fts"):
        db.execute("INSERT INTO journal_fts (journal_fts) VALUES ('rebuild')")
        db.execute("INSERT INTO journal_fts (journal_fts) VALUES ('optimize')")
    return any(change.table == "journal" for change in found)


def entries_of_messages(db: Database, marked: Marked) -> tuple[list[int], list[tuple[int, str]]]:
    """Journal entries of the scope that were made of these messages: ids of those made of them alone, and the others
    with their words. Summaries of conversations are neither."""
    alone, shared = [], []
    for row in scoped_rows(db, "journal", "scope", marked):
        sources = set(json.loads(row["sources"]))
        if row["source_type"] == SYNTHESIS or not sources & marked.ids:
            continue
        if sources <= marked.ids:
            alone.append(row["id"])
        else:
            shared.append((row["id"], row["content"]))
    return alone, shared


# ------------------------------------------------------------------------------------------------------------ journal


def _journal(db: Database, marked: Marked) -> Iterator[Change]:
    for row in scoped_rows(db, "journal", "scope", marked):
        if row["id"] in marked.entries:
            yield Change("journal", "journal", row["row_number"], None, _line(row["content"]))
        elif marked.wording.found(row["content"]) or marked.wording.found(row["tags"]):
            left, shown = marked.wording.without(row["content"]), marked.wording.excerpt(row["content"])
            # The old key is made of the words: who guesses them could prove it.
            values = {"key": f"forgotten:{row['id']}", "content": left, "tags": without_json(row["tags"], marked)}
            yield Change("journal", "journal", row["row_number"], values if left else None, shown)


def _let_go(db: Database, entry_ids: list[int]) -> None:
    """What refers to entries that go."""
    for entry_id in entry_ids:
        db.execute("UPDATE journal SET superseded_by = NULL WHERE superseded_by = ?", (entry_id,))
        if columns_of(db, "consolidated_entry_ids"):
            db.execute("DELETE FROM consolidated_entry_ids WHERE entry_id = ?", (entry_id,))


def _pend_again(db: Database, marked: Marked) -> None:
    """Other entries of a memory that goes: the next sleep makes a memory of them again."""
    if columns_of(db, "consolidated_entry_ids"):
        for memory_id in marked.memories:
            db.execute("DELETE FROM consolidated_entry_ids WHERE memory_id = ?", (memory_id,))


def _no_subjects(db: Database, marked: Marked) -> None:
    """A memory's id is made of words: who guesses them could prove it. What the plans are about is what they say."""
    if columns_of(db, "plan_subjects"):
        for subject in (*marked.memories, *map(entry_subject, marked.entries)):
            db.execute("DELETE FROM plan_subjects WHERE subject = ?", (subject,))


def _plans(db: Database, marked: Marked) -> Iterator[Change]:
    gone, entries = set(marked.memories), set(marked.entries)
    for row in scoped_rows(db, "change_plans", "scope", marked):
        body = json.loads(row["body"])
        kept = [change for change in body["changes"] if not _touches(change, gone, marked)]
        named = entries & set(body["entries"])
        if len(kept) == len(body["changes"]) and not named and not marked.wording.found(row["body"]):
            continue
        left = marked.wording.without_in(
            {**body, "changes": kept, "entries": [one for one in body["entries"] if one not in entries]},
            FORGOTTEN_PLACEHOLDER,
        )
        values = None if row["state"] == "planned" else {"body": dump_json(left)}
        yield Change("plans", "change_plans", row["row_number"], values, f"plan {row['id']}")


def _touches(change: dict[str, Any], gone: set[str], marked: Marked) -> bool:
    ids = {change["memory"]["id"], (change["before"] or {}).get("id")}
    return bool(ids & gone) or marked.wording.found(dump_json(change))


# ---------------------------------------------------------------------------------------------------- pins, profiles


def _pins(db: Database, marked: Marked) -> Iterator[Change]:
    for row in scoped_rows(db, "pins", "scope", marked):
        if row["message_id"] in marked.ids:
            yield Change("pins", "pins", row["row_number"], None, f"pin {row['id']}")
        elif marked.wording.found(row["text"]) and (row["message_id"] is None or marked.everywhere):
            left = marked.wording.without(row["text"])
            values = {"text": left} if left else None
            yield Change("pins", "pins", row["row_number"], values, f"pin {row['id']}")


def _profiles(db: Database, marked: Marked) -> Iterator[Change]:
    for row in scoped_rows(db, "entity_profiles", "scope", marked):
        worded = any(marked.wording.found(row[column]) for column in ("name", "aliases", "summary", "attributes"))
        if not worded and not _learned_of(_profile_of(row), marked):
            continue
        left = _profile_left(_profile_of(row), marked)
        values = None if left is None else _values(left)
        yield Change("profiles", "entity_profiles", row["row_number"], values, f"profile {row['id']}")


def _profile_of(row: Row) -> Profile:
    text = dump_json(
        {
            "kind": row["kind"],
            "name": row["name"],
            "aliases": json.loads(row["aliases"]),
            "summary": row["summary"],
            "attributes": json.loads(row["attributes"]),
        }
    )
    return from_text(text, row["scope"])


def _profile_left(profile: Profile, marked: Marked) -> Profile | None:
    """Without every alias and attribute that has the words, or was learned from what goes; None where the name has
    them."""
    wording = marked.wording
    if wording.found(profile.name):
        return None
    return replace(
        profile,
        aliases=tuple(one for one in profile.aliases if not wording.found(one)),
        summary=wording.without(profile.summary) if wording.found(profile.summary) else profile.summary,
        attributes=tuple(
            one
            for one in profile.attributes
            if not wording.found(f"{one.name}\n{one.value}") and not _is_of(one, marked)
        ),
    )


def _learned_of(profile: Profile, marked: Marked) -> bool:
    return any(_is_of(one, marked) for one in profile.attributes)


def _is_of(attribute: ProfileAttribute, marked: Marked) -> bool:
    """Whether it was learned from entries that go, and from no other."""
    return bool(attribute.sources) and set(attribute.sources) <= set(marked.entries)


def _values(profile: Profile) -> dict[str, Any]:
    raw = json.loads(as_text(profile))
    return {
        "name": profile.name,
        "folded": fold_name(profile.name),
        "aliases": dump_json(raw["aliases"]),
        "summary": profile.summary,
        "attributes": dump_json(raw["attributes"]),
    }


# -------------------------------------------------------------------------------------------------------------- edits


def _edits(db: Database, marked: Marked) -> Iterator[Change]:
    for row in scoped_rows(db, "edits", "scope", marked):
        if not any(_version_goes(row["target"], row[column], row["scope"], marked) for column in ("before", "after")):
            continue
        left = [_version_left(row["target"], row[column], row["scope"], marked) for column in ("before", "after")]
        # A change that was about nothing else has nothing to take back.
        gone = left[0] == left[1] or (left[1] == "" and row["target"].startswith(PROFILE))
        values = None if gone else {"before": left[0], "after": left[1]}
        yield Change("earlier versions", "edits", row["row_number"], values, row["target"])


def _version_goes(target: str, text: str, scope: str, marked: Marked) -> bool:
    """Whether a version has the words, or says what was learned from entries that go."""
    if marked.wording.found(text):
        return True
    if not (text and marked.entries and target.startswith(PROFILE)):
        return False
    return _learned_of(from_text(text, scope), marked)


def _version_left(target: str, text: str, scope: str, marked: Marked) -> str:
    if not _version_goes(target, text, scope, marked):
        return text
    if not target.startswith(PROFILE):
        return marked.wording.without(text)
    left = _profile_left(from_text(text, scope), marked)
    return "" if left is None else as_text(left)


def _line(text: str) -> str:
    return " ".join(text.split())[:80]
