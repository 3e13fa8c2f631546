"""What was said in archived generations, found by words. Pure but for what it is handed.

What always holds: only what is of the scope is looked through (I10). The master log keeps what was archived, so that
the home's own search finds it; an archive is opened only where the home's log lost it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from assistant.core.archives import ArchiveEntry
from assistant.core.records import LogRecord, SearchHit

# Of the home's hits only those of archived generations count.
HITS_PER_RESULT = 5
_AROUND = 120
# Of the best hit's score; what is worth less shares a common word with the question, or stands near an answer.
_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class ArchiveHit:
    """A message of an archived generation that has the words; `text` is an excerpt."""

    session: str
    generation: int
    message_id: int
    role: str
    at: datetime
    text: str


def hits_in_log(hits: Sequence[SearchHit], archived: Sequence[ArchiveEntry]) -> list[ArchiveHit]:
    """Those hits of the home's search that are of an archived generation, best first."""
    known = {(one.session, one.generation) for one in archived}
    of_these = [hit for hit in hits if (hit.session, hit.generation) in known]
    worth = _WORTH * max((hit.score for hit in of_these), default=0.0)
    return [
        ArchiveHit(hit.session, hit.generation, hit.message_id, hit.role, hit.ts, hit.text)
        for hit in of_these
        if hit.score >= worth
    ]


def search_archived_records(records: Sequence[LogRecord], text: str) -> Iterator[ArchiveHit]:
    """Messages that have all the words of `text`, in any case, newest first."""
    words = text.casefold().split()
    for record in reversed(visible_records(records)):
        folded = record.content.casefold()
        if words and all(word in folded for word in words):
            at = max(0, folded.find(words[0]) - _AROUND // 2)
            excerpt = " ".join(record.content[at : at + 2 * _AROUND].split())
            yield ArchiveHit(record.session, record.generation, record.id, record.role, record.ts, excerpt)


def visible_records(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Without what was undone, and without the records that only say what became of others."""
    undone = {one for record in records if record.kind == "undo" for one in record.refs}
    return [record for record in records if record.id not in undone and record.kind not in ("undo", "redaction")]
