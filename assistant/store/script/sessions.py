"""Sessions and the running totals of their views, one row per generation.

Totals are updated incrementally; views are never recounted in a turn. `prefix_rev` increases with every change before
the tail, and only then, so that plans can be committed by compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from sqlite3 import Row

from assistant.core.dataclass import dataclass
from assistant.core.errors import StaleView, StoreError
from assistant.core.records import SessionInfo, Turn
from assistant.core.sessions import BRANCH_PREFIX, IMPORT_PREFIX, is_imported
from assistant.store.database import Database
from assistant.store.rows import class_row


@dataclass(frozen=True, slots=True)
class Session:
    """One generation of a session, usually the current one."""

    key: str
    generation: int
    scope: str

    @property
    def row_key(self) -> tuple[str, int]:
        """Values for `session = ? AND generation = ?`."""
        return self.key, self.generation

    @property
    def columns(self) -> dict[str, str | int]:
        """The leading columns of every row of a session."""
        return {"session": self.key, "generation": self.generation, "scope": self.scope}


@dataclass(frozen=True, slots=True)
class ViewSize:
    """The total size of rows of a view."""

    messages: int = 0
    tokens: int = 0
    bytes: int = 0
    images: int = 0

    def __add__(self, other: ViewSize) -> ViewSize:
        return ViewSize(
            self.messages + other.messages,
            self.tokens + other.tokens,
            self.bytes + other.bytes,
            self.images + other.images,
        )

    def __sub__(self, other: ViewSize) -> ViewSize:
        return self + ViewSize(-other.messages, -other.tokens, -other.bytes, -other.images)


def sum_view_sizes(sizes: Iterable[ViewSize]) -> ViewSize:
    return sum(sizes, ViewSize())


session_of_row = class_row(Session)


def session_of_turn(turn: Turn) -> Session:
    return Session(turn.session, turn.generation, turn.scope)


def find_session_row(db: Database, key: str) -> Row | None:
    """Return the row of the newest generation."""
    sql = "SELECT * FROM sessions WHERE key = ? ORDER BY generation DESC LIMIT 1"
    return next(iter(db.remembered.rows("sessions", sql, (key,))), None)


def find_session(db: Database, key: str) -> Session | None:
    """Return the newest generation, None if there is no session of this name."""
    row = find_session_row(db, key)
    return None if row is None else session_of_row(row)


def current_generation(db: Database, key: str) -> int:
    """Return the current generation, 1 if the session does not exist."""
    return db.value("SELECT max(generation) FROM sessions WHERE key = ?", (key,)) or 1


def require_session(db: Database, key: str) -> Session:
    """Raises `StoreError` if the session does not exist."""
    session = find_session(db, key)
    if session is None:
        raise _unknown_session(key)
    return session


def _unknown_session(key: str) -> StoreError:
    return StoreError(f"There is no session {key!r}. Nothing was changed; `assistant sessions` lists them.")


def ensure_session(db: Database, key: str, scope: str, now: datetime) -> Session:
    """Return the current generation of a session, created (within a transaction) if necessary. Raises `StoreError` if
    it belongs to another scope."""
    session = find_session(db, key)
    if session is None:
        insert_session(db, key, 1, scope, now)
        return Session(key, 1, scope)
    if session.scope != scope:
        raise StoreError(f"Session {key!r} is not of scope {scope!r}. Nothing was changed.")
    return session


def insert_session(db: Database, key: str, generation: int, scope: str, now: datetime) -> None:
    """Insert a generation unless it exists. An imported conversation has ended from the start."""
    ended = {"ended_at": now, "end_reason": "import", "cleared": 1} if is_imported(key) else {}
    db.insert_if_new("sessions", key=key, generation=generation, scope=scope, started_at=now, **ended)


def extend_import(db: Database, session: Session, times: Collection[datetime]) -> None:
    """Extend an imported session to the times of its messages, within a transaction."""
    if not times:
        return
    db.execute(
        "UPDATE sessions SET started_at = min(started_at, ?), ended_at = max(ended_at, ?)"
        " WHERE key = ? AND generation = ?",
        (min(times), max(times), *session.row_key),
    )


def update_session(db: Database, session: Session, **columns: str | int | datetime | None) -> None:
    """Within a transaction."""
    db.update_rows("sessions", {"key": session.key, "generation": session.generation}, **columns)


def add_to_totals(db: Database, session: Session, delta: ViewSize) -> None:
    """Add to the running totals without changing `prefix_rev`."""
    db.execute(
        "UPDATE sessions SET view_messages = view_messages + ?, view_tokens = view_tokens + ?,"
        " view_bytes = view_bytes + ?, view_images = view_images + ? WHERE key = ? AND generation = ?",
        (delta.messages, delta.tokens, delta.bytes, delta.images, *session.row_key),
    )


def add_to_totals_and_bump(db: Database, session: Session, delta: ViewSize) -> None:
    """Add to the running totals and increment `prefix_rev`, after a change of the prefix."""
    add_to_totals(db, session, delta)
    db.execute("UPDATE sessions SET prefix_rev = prefix_rev + 1 WHERE key = ? AND generation = ?", session.row_key)


def recount_totals(db: Database, session: Session) -> None:
    """Recompute the totals from the rows (for undo and repair) and increment `prefix_rev`."""
    db.execute(
        "UPDATE sessions SET (view_messages, view_tokens, view_bytes, view_images) = (SELECT count(*),"
        " coalesce(sum(tokens), 0), coalesce(sum(bytes), 0), coalesce(sum(images), 0) FROM conversation_history h"
        " WHERE h.session = sessions.key AND h.generation = sessions.generation AND h.position > sessions.view_floor),"
        " prefix_rev = prefix_rev + 1 WHERE key = ? AND generation = ?",
        session.row_key,
    )


def read_view_floor(db: Database, session: Session) -> int:
    """Return the position above which the view begins."""
    return db.value("SELECT view_floor FROM sessions WHERE key = ? AND generation = ?", session.row_key) or 0


def require_prefix_rev(db: Database, key: str, prefix_rev: int) -> Session:
    """Return the session if its view is still at `prefix_rev`. Raises `StaleView`."""
    row = find_session_row(db, key)
    if row is None or row["prefix_rev"] != prefix_rev:
        raise StaleView
    return session_of_row(row)


def branch_ancestry(db: Database, key: str) -> list[str]:
    """Return a session and its ancestors."""
    rows = db.rows(
        "WITH RECURSIVE line (key) AS (SELECT ? UNION SELECT s.parent_session FROM line"
        " JOIN sessions s ON s.key = line.key WHERE s.parent_session IS NOT NULL) SELECT key FROM line",
        (key,),
    )
    return [row["key"] for row in rows]


def sort_parents_first(sessions: Collection[str]) -> list[str]:
    """Sort sessions so that branches follow their parents."""
    return sorted(
        sessions, key=lambda key: (key.startswith(BRANCH_PREFIX), len(key) if key.startswith(BRANCH_PREFIX) else 0, key)
    )


def count_messages(after: str, until: str) -> str:
    """Return SQL that counts messages of generation `s` in a seq range. Records are numbered without gaps, so only the
    exceptions (other kinds, undone) are counted, which stays fast in long sessions."""
    return f"""
    coalesce(max(0, ({until}) - ({after}) - (SELECT count(*) FROM messages u WHERE u.session = s.key
     AND u.generation = s.generation AND (u.kind <> 'message' OR u.hidden_by IS NOT NULL)
     AND u.seq > ({after}) AND u.seq <= ({until}))), 0)
"""


# Messages out of view that are not extracted yet (F28): in live checkpoints and ended generations.
_UNEXTRACTED = count_messages(
    "max(s.extracted_seq, s.from_seq - 1)",
    "iif(s.ended_at IS NULL, (SELECT max(c.to_seq) FROM checkpoints c WHERE c.session_id = s.key"
    " AND c.generation = s.generation AND c.state = 'live'),"
    " (SELECT n.from_seq - 1 FROM sessions n WHERE n.key = s.key AND n.generation = s.generation + 1))",
)
# `seq` counts log records; `checkpoints` counts compactions that were not undone.
_SELECT_INFOS = f"""
    SELECT s.*, (SELECT min(f.started_at) FROM sessions f WHERE f.key = s.key) AS begun_at, m.ts AS last_at,
     coalesce(m.seq, 0) AS seq, {_UNEXTRACTED} AS unextracted,
     (SELECT count(*) FROM checkpoints c WHERE c.session_id = s.key AND c.state IN ('live', 'masked', 'absorbed'))
     AS checkpoints
    FROM sessions s LEFT JOIN messages m ON m.session = s.key
     AND m.seq = (SELECT max(seq) FROM messages l WHERE l.session = s.key)
"""
_IS_CURRENT = "WHERE s.generation = (SELECT max(generation) FROM sessions g WHERE g.key = s.key)"
_IS_IMPORTED = f"s.key GLOB '{IMPORT_PREFIX}*'"
# Messages are not counted: it is enough to know that one is unread.
_UNREAD_IMPORTS = f"""
    SELECT s.*, s.started_at AS begun_at, s.ended_at AS last_at, 1 AS unextracted, 0 AS checkpoints,
     (SELECT max(seq) FROM messages l WHERE l.session = s.key) AS seq
    FROM sessions s WHERE {_IS_IMPORTED} AND EXISTS (SELECT 1 FROM messages u WHERE u.session = s.key
     AND u.seq > s.extracted_seq AND u.kind = 'message' AND u.hidden_by IS NULL AND u.unlearned = 0)
    ORDER BY s.started_at, s.key LIMIT ?
"""


_read_info = class_row(SessionInfo, started_at="begun_at", messages="seq", parent="parent_session")


def list_session_infos(db: Database) -> list[SessionInfo]:
    """Return the current generations of all sessions except imported ones, latest activity first."""
    return db.read_all(_read_info, f"{_SELECT_INFOS} {_IS_CURRENT} AND NOT {_IS_IMPORTED} ORDER BY m.ts DESC, s.key")


def list_unread_generations(db: Database) -> list[SessionInfo]:
    """Return ended generations with messages not extracted yet, in the order in which they ended."""
    where = f"WHERE s.ended_at IS NOT NULL AND NOT {_IS_IMPORTED} AND {_UNEXTRACTED} > 0"
    return db.read_all(_read_info, f"{_SELECT_INFOS} {where} ORDER BY s.ended_at, s.key")


def list_unread_imports(db: Database, limit: int) -> list[SessionInfo]:
    """Return imported sessions with messages not extracted yet, earliest first."""
    return db.read_all(_read_info, _UNREAD_IMPORTS, (limit,))


def find_session_info(db: Database, key: str) -> SessionInfo | None:
    """Return the current generation of a session, which may be imported."""
    return db.read_one(_read_info, f"{_SELECT_INFOS} {_IS_CURRENT} AND s.key = ?", (key,))


def session_info(db: Database, key: str) -> SessionInfo:
    """Raises `StoreError` if the session does not exist."""
    info = find_session_info(db, key)
    if info is None:
        raise _unknown_session(key)
    return info
