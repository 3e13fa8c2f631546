"""What stands in a home, as plain JSON that two runs can be compared by.

It is read from the files themselves, not through the stores that wrote them. Left out is what may never be the same
twice: random salts and the hashes that follow from them, and times. Turns are called by the messages they answer.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from assistant.core.notices import NoticeKind

_SQLITE_SIDE_FILES = ("-wal", "-shm", "-journal")
# Keys of what the owner is told of a delivery that may have arrived.
DOUBT = "uncertain:"


_opened: ContextVar[dict[Path, sqlite3.Connection] | None] = ContextVar("opened", default=None)


@contextmanager
def each_opened_once() -> Iterator[None]:
    """Within it a database is opened by the first query and no other: SQLite reads its whole schema then."""
    connections: dict[Path, sqlite3.Connection] = {}
    token = _opened.set(connections)
    try:
        yield
    finally:
        _opened.reset(token)
        for connection in connections.values():
            connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)


def rows(path: Path, sql: str, *values: str) -> list[list[Any]]:
    """The rows of a query over one of the home's databases."""
    if (connections := _opened.get()) is not None:
        if path not in connections:
            connections[path] = _connect(path)
        return [list(row) for row in connections[path].execute(sql, values)]
    with closing(_connect(path)) as connection:
        return [list(row) for row in connection.execute(sql, values)]


def logged(home: Path) -> dict[str, list[Any]]:
    """The records of every session's log: kind, role, what was said, to what it belongs."""
    found = {}
    for path in sorted((home / "log").glob("*/conversation.jsonl")):
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        found[path.parent.name] = [
            [
                r["seq"],
                r["kind"],
                r["role"],
                r["content"],
                r["tool_calls"],
                r["tool_call_id"],
                r["turn"],
                r["bridge"],
                r["model"],
                len(r["refs"]),
            ]
            for r in records
        ]
    return found


_IN_VIEW = "h.position > (SELECT view_floor FROM sessions s WHERE s.key = h.session AND s.generation = h.generation)"


def stored(home: Path) -> dict[str, Any]:
    """script.db by table, and whether its running totals are what the rows add up to."""
    script = home / "script.db"
    return {
        "inbox": rows(script, "SELECT external_id, session, state, turn FROM inbox ORDER BY external_id"),
        "turns": rows(script, "SELECT id, session, state, error FROM turns ORDER BY id"),
        "tool runs": rows(script, "SELECT turn, call_id, name, arguments, state FROM tool_runs ORDER BY turn, id"),
        "outbox": rows(script, "SELECT key, session, bridge, target, kind, body, state FROM outbox ORDER BY key"),
        "view": [
            [*row[:3], _lasting(json.loads(row[3])), *row[4:]]
            for row in rows(
                script,
                "SELECT session, role, content, metadata, tokens, bytes, images FROM conversation_history h WHERE"
                f" {_IN_VIEW} ORDER BY session, generation, position",
            )
        ],
        "sessions": rows(
            script,
            "SELECT key, generation, scope, view_messages, view_images FROM sessions ORDER BY key, generation",
        ),
        "checkpoints": rows(
            script,
            "SELECT session_id, checkpoint_num, messages_compressed, from_seq, to_seq, trigger, tier, state"
            " FROM checkpoints ORDER BY session_id, checkpoint_num",
        ),
        "read by the journal": rows(
            script, "SELECT key, generation, extracted_seq FROM sessions ORDER BY key, generation"
        ),
        "requests": rows(script, "SELECT session, state, task, closed_by FROM requests ORDER BY message_id"),
        "index": rows(
            script, "SELECT session, seq, kind, role, hidden_by IS NOT NULL FROM messages ORDER BY session, seq"
        ),
        "coverage": _uncovered(script),
        "running totals": _wrong_totals(script),
        "length not told": _length_not_told(script),
        "spending": rows(script, "SELECT purpose, model, state, count(*) FROM usage GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"),
        "spending totals": _wrong_spending(script),
    }


def _lasting(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without what the log does not know, and a record taken from it after a crash cannot have; nor the numbers of
    checkpoints, which an attempt that was cut off uses up."""
    return {key: value for key, value in metadata.items() if key not in ("compacted_at", "is_error", "checkpoints")}


def _wrong_totals(script: Path) -> list[list[Any]]:
    """Sessions whose running totals are not the sum of their view."""
    return rows(
        script,
        """SELECT s.key, s.view_messages, count(h.id), s.view_tokens, total(h.tokens) FROM sessions s
        LEFT JOIN conversation_history h ON h.session = s.key AND h.generation = s.generation
        AND h.position > s.view_floor
        GROUP BY s.key, s.generation
        HAVING s.view_messages <> count(h.id) OR s.view_tokens <> total(h.tokens) OR s.view_bytes <> total(h.bytes)""",
    )


def _uncovered(script: Path) -> list[list[Any]]:
    """Messages that neither a checkpoint nor the view has, or both, or a checkpoint twice (I3)."""
    return rows(
        script,
        f"""SELECT m.session, m.seq, (SELECT count(*) FROM checkpoints c WHERE c.session_id = m.session
            AND c.state = 'live' AND m.seq BETWEEN c.from_seq AND c.to_seq) AS covered, (SELECT count(*)
            FROM conversation_history h WHERE h.message_id = m.id AND h.carried_from IS NULL AND {_IN_VIEW}) AS shown
        FROM messages m WHERE m.hidden_by IS NULL AND m.kind <> 'undo' AND covered + shown <> 1""",
    )


LONG = NoticeKind.LONG_CONVERSATION.fill("").text
"""The notice that comes with a conversation's third compaction."""
_STUCK = NoticeKind.CONTEXT_STAYS_FULL.fill("", size="%", minimum="%").text


def _length_not_told(script: Path) -> list[list[Any]]:
    """Conversations of three compactions for room or more that were not told of their length, or of fewer that were:
    the notice is committed with the compaction that it is about. A message can consist of several notices."""
    return rows(
        script,
        """WITH made AS (SELECT session_id AS session, count(*) AS compactions FROM checkpoints
            WHERE state IN ('live', 'absorbed') AND trigger NOT IN ('economy', 'cold')
            AND json_extract(key_facts, '$.merged') IS NULL GROUP BY 1)
        SELECT s.key, ifnull(compactions, 0) FROM sessions s LEFT JOIN made ON made.session = s.key
        WHERE (ifnull(compactions, 0) >= 3) <> EXISTS (SELECT 1 FROM outbox o
            WHERE o.session = s.key AND instr(o.body, ?))
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.session = s.key AND o.body LIKE ?)""",
        LONG,
        f"%{_STUCK}%",
    )


def _wrong_spending(script: Path) -> list[list[Any]]:
    """Days whose kept total is not the sum of their calls, unsettled ones at their worst case."""
    return rows(
        script,
        """WITH per_day AS (SELECT substr(ts, 1, 10) AS day, count(*) AS calls, sum(CASE state WHEN 'settled'
            THEN input + output + cache_read + cache_write ELSE reserved_tokens END) AS tokens FROM usage GROUP BY 1)
        SELECT period, t.calls, d.calls, t.tokens, d.tokens FROM usage_totals t JOIN per_day d ON d.day = t.period
        WHERE t.calls <> d.calls OR t.tokens <> d.tokens""",
    )


def remembered(home: Path) -> dict[str, Any]:
    """character.db by table."""
    character = home / "character.db"
    return {
        "todos": rows(character, "SELECT scope, text, state FROM todos ORDER BY id"),
        "journal": rows(character, "SELECT scope, session, source_type, content FROM journal ORDER BY 3, 4"),
        "sleep cycles": rows(character, "SELECT trigger, state FROM sleep_cycles ORDER BY id"),
        "keyed effects": rows(character, "SELECT scope, count(*) FROM effects GROUP BY scope ORDER BY scope"),
    }


def noted(home: Path) -> list[str]:
    """What the notes of days say, without when: a life after a fault is an hour later."""
    texts = [note.read_text(encoding="utf-8") for note in home.glob("memory/*.md")]
    return sorted(line for text in texts for line in text.splitlines() if line.startswith("- "))


def files(home: Path) -> list[list[str]]:
    """Every file and directory of the home with its permissions, SQLite's side files apart (they come and go)."""
    return [
        [str(path.relative_to(home)), f"{path.stat().st_mode & 0o777:04o}"]
        for path in sorted(home.rglob("*"))
        if not path.name.endswith(_SQLITE_SIDE_FILES)
    ]


def without_turn_ids(picture: dict[str, Any], home: Path) -> dict[str, Any]:
    """The picture with every turn called by the first message it answers."""
    text = json.dumps(picture).replace(str(home), "HOME")
    first = "SELECT turn, min(external_id) FROM inbox WHERE turn IS NOT NULL GROUP BY turn"
    for turn, external_id in rows(home / "script.db", first):
        text = text.replace(str(turn), f"turn of {external_id}")
    # How long an approval may be given follows the clock, which goes on with each life.
    text = re.sub(r"until \w+ \d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "until its end", text)
    return dict(json.loads(text))
