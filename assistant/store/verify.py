"""Proof of the master log: the chain of headers and the commitment of every record (I2)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from assistant.records import Problem, Report
from assistant.store.conversation import Conversation
from assistant.store.database import Database
from assistant.store.line import GENESIS, commitment, decode, header_hash, split
from assistant.store.log import MasterLog


class Verifier:
    """Implements `ports.Verifier`."""

    def __init__(self, home: Path, db: Database, log: MasterLog, conversation: Conversation) -> None:
        self._log = log

    def verify(self) -> Report:
        sessions = self._log.sessions()
        problems = [problem for session in sessions for problem in self._chain(session)]
        return Report(len(sessions), 0, sum(self._log.size(session) for session in sessions), tuple(problems))

    def repair(self, now: datetime) -> Report:
        return self.verify()

    def _chain(self, session: str) -> Iterator[Problem]:
        prev = GENESIS
        for offset, line in self._log.lines(session):
            header, salt, body = split(line)
            record = decode(line, offset)
            if record.prev != prev or commitment(salt, body) != record.commit:
                yield Problem("chain", f"{session} byte {offset}", "the record does not follow the one before it")
            prev = header_hash(header)
