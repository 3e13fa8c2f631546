"""What compactions leave behind besides coverage, as a check: rows kept to be put back, absorbed checkpoints, leases,
ranges that the journal has still to read.
"""

from __future__ import annotations

from collections.abc import Iterator

from assistant.store import earlier, extraction
from assistant.store.coverage import where
from assistant.store.database import Database
from assistant.store.findings import Findings
from assistant.store.session_rows import Session


def check(db: Database, findings: Findings) -> None:
    for row in db.rows("SELECT * FROM sessions ORDER BY key, generation"):
        session = Session(row["key"], row["generation"], row["scope"])
        for text in _absorbed(db, session):
            findings.add("compaction", where(session), text)
        for checkpoint in broken(db, session):
            text = f"what checkpoint {checkpoint} replaced is not as it was; it cannot be undone"
            findings.add("compaction", where(session), text, repairable=True)
        if stray_lease(db, session):
            findings.add("compaction", where(session), "a lease without a compaction", repairable=True)
        for first, last in extraction.forgotten_by_all(db, session):
            text = f"messages between seq {first} and {last} left the view and are not queued for the journal"
            findings.add("compaction", where(session), text, repairable=True)


def broken(db: Database, session: Session) -> list[int]:
    """Numbers of the checkpoints whose rows were to be kept and are not what they were."""
    kept = earlier.kept(db, session)
    return [row["checkpoint_num"] for row in kept if not earlier.is_whole(db, session, row, row["set_floor"])]


def stray_lease(db: Database, session: Session) -> bool:
    row = db.row(
        "SELECT 1 FROM sessions s WHERE s.key = ? AND s.generation = ? AND s.lease_holder IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM checkpoints c WHERE c.session_id = s.key AND c.generation = s.generation"
        " AND c.state = 'started')",
        (session.key, session.generation),
    )
    return row is not None


def _absorbed(db: Database, session: Session) -> Iterator[str]:
    """A checkpoint that was taken over is part of the one that did it."""
    for row in db.rows(
        "SELECT a.checkpoint_num FROM checkpoints a WHERE a.session_id = ? AND a.generation = ?"
        " AND a.state = 'absorbed' AND NOT EXISTS (SELECT 1 FROM checkpoints c, json_each(c.absorbs) e"
        " WHERE c.session_id = a.session_id AND c.state IN ('live', 'absorbed') AND e.value = a.id"
        " AND c.from_seq <= a.from_seq AND c.to_seq >= a.to_seq)",
        (session.key, session.generation),
    ):
        yield f"checkpoint {row['checkpoint_num']} was taken over by none that covers its range"
