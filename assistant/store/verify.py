"""Proof that the home is whole (I2, I3): chain, commitments, index against log, coverage, foreign keys, the database's
own structure. Reads only; a daemon may be running meanwhile.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

from assistant.core.records import IntegrityProblem, IntegrityReport
from assistant.store import compacted, coverage
from assistant.store.chain import sessions_of, walk_log
from assistant.store.conversation import Conversation
from assistant.store.database import Database
from assistant.store.findings import Findings
from assistant.store.log import MasterLog
from assistant.store.repair import Repair


class Verifier:
    """Implements `ports.Verifier` over the databases and logs of `home`."""

    def __init__(self, home: Path, db: Database, log: MasterLog, conversation: Conversation) -> None:
        self._home = home
        self._db = db
        self._log = log
        self._repair = Repair(db, log, conversation)

    def verify(self) -> IntegrityReport:
        begun = time.monotonic()
        findings, walks, name = Findings(), [], self._db.path.name
        with findings.broken(name):
            sessions = {*sessions_of(self._log, findings), *self._indexed_sessions()}
            walks = [walk_log(self._db, self._log, session, findings) for session in sorted(sessions)]
        for check in (self._check_inbox, self._check_coverage):
            with findings.broken(name):
                check(findings)
        with findings.broken(name):
            _check_structure(self._db, findings)
        with findings.broken("character.db"):
            self._check_character(findings)
        return IntegrityReport(
            sessions=len(walks),
            records=sum(walk.records for walk in walks),
            bytes=sum(walk.bytes for walk in walks),
            problems=findings.problems(),
            redactions=tuple(sorted(message_id for walk in walks for message_id in walk.blanked)),
            seconds=time.monotonic() - begun,
        )

    def recent(self, last: int) -> tuple[IntegrityProblem, ...]:
        """What is wrong with the `last` so many records of each session: quick, however long the logs are."""
        findings = Findings()
        with findings.broken(self._db.path.name):
            for session in sorted({*sessions_of(self._log, findings), *self._indexed_sessions()}):
                walk_log(self._db, self._log, session, findings, last=last)
            self._check_inbox(findings)
        return findings.problems()

    def repair(self, now: datetime) -> IntegrityReport:
        self._repair.run(now)
        return self.verify()

    def _indexed_sessions(self) -> list[str]:
        return [row["key"] for row in self._db.rows("SELECT DISTINCT key FROM sessions")]

    def _check_inbox(self, findings: Findings) -> None:
        """What a turn took up is in the log (I1)."""
        for row in self._db.each(
            "SELECT id, message_id FROM inbox WHERE state <> 'accepted'"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = inbox.message_id)"
        ):
            text = f"accepted message {row['message_id']} was taken up and is not in the log"
            findings.add("inbox", f"inbox {row['id']}", text, repairable=True)

    def _check_coverage(self, findings: Findings) -> None:
        with self._db.snapshot():
            coverage.check(self._db, findings)
            compacted.check(self._db, findings)

    def _check_character(self, findings: Findings) -> None:
        path = self._home / "character.db"
        if path.exists():
            character = Database.reader(path)
            try:
                _check_structure(character, findings)
            finally:
                character.close()


def _check_structure(db: Database, findings: Findings) -> None:
    """References, and the pages of the file themselves."""
    name = db.path.name
    for row in db.rows("PRAGMA foreign_key_check"):
        findings.add("reference", name, f"row {row['rowid']} of {row['table']} refers to nothing in {row['parent']}")
    for row in db.rows("PRAGMA quick_check(20)"):
        if row[0] != "ok":
            findings.add("database", name, row[0])
