"""What somebody said, and what the program's own formats say: names of fields, tables and columns, times, digests, and
values like a message's role. A person may use the same words ("name", "content", "salt"); these are no copies of what
they said, and are never changed. Nothing here reads or writes files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from assistant.core.erasure_phrases import PhraseMatcher
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import Database
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.log.format import split_line

# Fields with values that the program chooses.
_FIELDS_OF_MESSAGES = ("kind", "role", "trust", "scope", "ts", "turn", "commit", "prev", "salt", "mime", "tool_call_id")
_FIELDS_OF_MEMORIES = ("hash", "action", "state", "said_at", "created_at", "updated_at", "superseded_by")
_OWN_VALUES = frozenset((*_FIELDS_OF_MESSAGES, *_FIELDS_OF_MEMORIES, "id", "key", "type"))
# Those beside which `name` is a tool's.
_BESIDE_TOOL_NAMES = frozenset(("arguments", "tool_calls", "tool_call_id"))
_BELOW = 2  # how deep a value is in the arguments of a tool: below its parameters


def _is_own(key: str, fields: dict[str, Any], depth: int) -> bool:
    is_tool = key == "name" and not _BESIDE_TOOL_NAMES.isdisjoint(fields)
    return depth == 0 and (key in _OWN_VALUES or is_tool)


def _depth_below(key: str, depth: int) -> int:
    return min(depth + 1, _BELOW) if depth or key == "arguments" else 0


def find_said(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value that somebody said. The keys of what a tool was given, below its
    parameters, are theirs too. `depth` is 1 for the arguments of a tool themselves."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if not _is_own(key, value, depth):
                yield from (key,) if depth == _BELOW else ()
                yield from find_said(item, _depth_below(key, depth))
    elif isinstance(value, list):
        for item in value:
            yield from find_said(item, depth)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def remove_said(value: Any, wording: PhraseMatcher, instead: str, depth: int = 0) -> Any:
    """Return a JSON value without the text in what `find_said` yields. A text that becomes empty is dropped from a list
    of texts, and replaced by `instead` elsewhere; a key with the text is removed with its value."""
    if isinstance(value, str):
        return (wording.remove_from_text(value) or instead) if wording.matches(value) else value
    if isinstance(value, dict):
        return {
            key: item if _is_own(key, value, depth) else remove_said(item, wording, instead, _depth_below(key, depth))
            for key, item in value.items()
            if not (depth == _BELOW and wording.matches(key))
        }
    if isinstance(value, list):
        has_texts_only = all(isinstance(item, str) for item in value)
        kept = [item for item in value if not (has_texts_only and _is_all(item, wording))]
        return [remove_said(item, wording, instead, depth) for item in kept]
    is_number = value is not None and not isinstance(value, bool)
    return instead if depth and is_number and wording.matches(str(value)) else value


def _is_all(text: str, wording: PhraseMatcher) -> bool:
    """Return whether nothing of a text would be left."""
    return wording.matches(text) and not wording.remove_from_text(text)


def said_in_json(text: str, depth: int = 0) -> str:
    """Return what somebody said in a JSON text; invalid JSON is returned as it is."""
    try:
        said = "\0".join(find_said(json.loads(text), depth))
    except (ValueError, RecursionError):
        return text
    # Half a character, as JSON can escape it, cannot be encoded.
    return said.encode(errors="replace").decode()


def is_said_in_json(text: str, wording: PhraseMatcher, depth: int = 0) -> bool:
    return wording.matches(text) and wording.matches(said_in_json(text, depth))


def said_in_record(line: bytes) -> bytes:
    """Return what was said in a record, of its line in the log; of an invalid line, all of it."""
    try:
        return said_in_json(split_line(line)[2].decode()).encode()
    except ValueError:
        return line


def is_said_in_record(line: bytes, wording: PhraseMatcher) -> bool:
    return bool(wording.match_ends(line)) and bool(wording.match_ends(said_in_record(line)))


def without_own_words(data: bytes) -> bytes:
    """Return what was said in lines of JSON, such as a log, with the names of senders and conversations."""
    return b"\n".join(said_in_json(line.decode()).encode() if _is_text(line) else line for line in data.splitlines())


def without_own_words_of_file(data: bytes) -> bytes:
    """The same, of a file that is one JSON value."""
    return said_in_json(data.decode()).encode() if _is_text(data) else data


def _is_text(line: bytes) -> bool:
    try:
        return bool(line.decode())
    except ValueError:
        return False


def without_words_of_schema(db: Database, plan: ErasurePlan) -> ErasurePlan:
    """Return the plan without what its tables and columns are called as well: the bytes of a database cannot tell one
    from the other, its rows can."""
    rows = db.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    schema = " ".join((*(row["sql"] for row in rows), OWNER_SCOPE))

    def only_said(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if not PhraseMatcher((text,)).matches(schema))

    return replace(plan, phrases=only_said(plan.phrases), values=only_said(plan.values), runs=only_said(plan.runs))
