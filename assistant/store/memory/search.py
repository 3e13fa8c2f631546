"""Searches memories, and journal entries that are not part of a memory yet, by content. Implements `MemorySearch`.

- Each query has a scope, and each returned row is checked against it (I10).
- The journal is searched, so an entry is found as soon as it is stored, even while semantic memory is down; an entry
  that went into a memory is shown as that memory, once. Entries that were rejected, or undone with their sleep cycle,
  are not found.
- Former memories rank below current ones and come with their successor. Age and low importance lower the rank, but
  remove nothing.
- As of an earlier time (`as_of`), the search covers exactly what was known then.

A hit's rank does not determine whether it may be mentioned unasked, since even the best hit may be unrelated to the
question. That depends on the similarity in meaning, the share of the question's words in the hit, and whether it has
the distinctive ones more often than by chance. The weights and the threshold are measured
(`tests/recall_bench/unasked.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from sqlite3 import Row
from threading import Lock

from assistant.context.question import names_date_within
from assistant.core.memories import Memory, MemoryHit, MemorySearchExplanation
from assistant.search.finder import SourceFinder
from assistant.search.index_values import SearchExplanation, SearchFilter, SourceHit
from assistant.search.match import PreparedQuery, prepare_query
from assistant.search.query import query_words
from assistant.store.character.consolidations import KnowledgeAsOf, entry_as_memory
from assistant.store.character.journal import UNDONE_NOTE, read_entry
from assistant.store.database import Database
from assistant.store.rows import format_time, parse_time
from assistant.store.search.sources import JOURNAL_ENTRY_ROLE

MemoriesById = Callable[[Sequence[str]], Mapping[str, Memory]]
"""Memories by their ids, as many as can be read now."""
_Find = Callable[..., Sequence[SourceHit]]
_Hit = tuple[Row, SourceHit, Memory]
"""An entry, how it was found, and what it is shown as."""

_SHARE_WEIGHT, _SURPRISE_WEIGHT = 0.25, 0.115
# The hit has all of the question's words.
_ALL_WORDS_BONUS, _ALL_WORDS_SHARE = 0.15, 0.95
# The more can be found, the better the best unrelated hit scores.
_THRESHOLD, _THRESHOLD_GROWTH = 0.45, 0.04
_SUPERSEDED_PENALTY, _AGE_WEIGHT, _AGE_LIMIT = 0.3, 0.15, timedelta(days=730)
_OF_THE_TIME = 1.0
_MAX_QUERY = 4_000
_SPARE, _WITH_TIMES = 12, 200
_NEVER = datetime.min.replace(tzinfo=UTC)

_SELECT = (
    "SELECT j.*, c.entry_id AS settled, c.memory_id AS memory, c.note AS note, c.cycle AS settled_in,"
    " r.timestamp AS until, rc.memory_id AS by_memory"
    " FROM journal j LEFT JOIN consolidated_entry_ids c ON c.entry_id = j.id"
    " LEFT JOIN journal r ON r.id = j.superseded_by"
    " LEFT JOIN consolidated_entry_ids rc ON rc.entry_id = r.id"
)


class StoredMemorySearch:
    """Searches memories, and journal entries without a memory, by content. Needs neither Mem0 nor a child process. May
    be called from any thread, one call at a time. Opens nothing for writing."""

    def __init__(self, database: Database, finder: SourceFinder, memories: MemoriesById) -> None:
        """`database` (character.db) and `finder` are owned by this object and closed with it."""
        self._db = database
        self._as_of = KnowledgeAsOf(database)
        self._finder = finder
        self._memories = memories
        self._lock = Lock()

    def close(self) -> None:
        with self._lock:
            self._finder.close()
            self._db.close()

    def search(
        self,
        question: str,
        scope: str,
        *,
        limit: int = 8,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
    ) -> list[MemoryHit]:
        """Return hits, best first, including everything stored until now. Outdated hits rank below current ones and
        come with their successors. With `after` and `before`: first what was said in [after, before), then what was
        said earlier and was valid in between, and what was said later and names a day in that period. With `as_of`:
        what was known then, like `Consolidations.known_then`. Raises `StoreError`."""
        return self._search(self._finder.find, question, scope, limit, after, before, as_of)

    def explain(
        self,
        question: str,
        scope: str,
        *,
        limit: int = 8,
        after: datetime | None = None,
        before: datetime | None = None,
    ) -> MemorySearchExplanation:
        """Return the hits of `search` with how they were found. Raises `StoreError`."""
        explained = SearchExplanation({}, (), 0, 0, 0, [])

        def find(question: str, where: SearchFilter, *, limit: int) -> Sequence[SourceHit]:
            nonlocal explained
            explained = self._finder.explain(question, where, limit=limit)
            return explained.hits

        hits = self._search(find, question, scope, limit, after, before, None)
        return MemorySearchExplanation(
            explained.words, explained.asks_for, explained.sources, explained.by_words, explained.by_meaning, hits
        )

    def _search(
        self,
        find: _Find,
        question: str,
        scope: str,
        limit: int,
        after: datetime | None,
        before: datetime | None,
        as_of: datetime | None,
    ) -> list[MemoryHit]:
        question = question[:_MAX_QUERY]
        words = query_words(question)
        if limit <= 0 or not words:
            return []
        many = _WITH_TIMES if after or before else limit + _SPARE
        with self._lock:
            newest, last = self._newest(scope, as_of)
            hits = find(question, SearchFilter(scope, (JOURNAL_ENTRY_ROLE,), last=last), limit=many)
            if not hits:
                return []
            query = prepare_query(self._finder, words)
            recalled = [
                replace(hit, score=hit.score - _penalty(hit.memory, newest))
                for hit in self._to_hits(self._hits(hits, scope, as_of), query)
            ]
            if after or before:
                recalled = list(_of_the_time(recalled, after, before))
            else:
                recalled = self._with_successors(recalled, scope, as_of)
        return sorted(recalled, key=lambda hit: -hit.score)[:limit]

    def search_by_time(self, scope: str, after: datetime, before: datetime, *, limit: int = 8) -> list[MemoryHit]:
        """Return what was said in [after, before), most important first. Raises `StoreError`."""
        with self._lock:
            rows = self._db.rows(
                f"{_SELECT} WHERE j.scope = ? AND j.timestamp >= ? AND j.timestamp < ?"
                " AND j.source_type <> 'context_synthesis' ORDER BY j.importance DESC, j.id DESC LIMIT ?",
                (scope, format_time(after), format_time(before), limit + _SPARE),
            )
            hits = [(row, SourceHit(row["id"], row["importance"])) for row in rows if not _is_rejected(row)]
            return self._to_hits(self._current_hits(hits), None)[:limit]

    # -------------------------------------------------------------------------------------------------------- what fits

    def _is_relevant(self, text: str, hit: SourceHit, query: PreparedQuery) -> bool:
        fit = query.significance.measure_fit(query.matcher.words_in(text))
        bar = _THRESHOLD + _THRESHOLD_GROWTH * math.log(query.significance.passage_count + 1)
        whole = _ALL_WORDS_BONUS if fit.share >= _ALL_WORDS_SHARE else 0.0
        return hit.similarity + _SHARE_WEIGHT * fit.share + _SURPRISE_WEIGHT * fit.surprise + whole >= bar

    # ---------------------------------------------------------------------------------------------------------- reading

    def _hits(self, hits: Sequence[SourceHit], scope: str, as_of: datetime | None) -> list[_Hit]:
        rows = self._db.rows(
            f"{_SELECT} WHERE j.id IN (SELECT value FROM json_each(?)) AND j.scope = ?",
            (json.dumps([hit.source for hit in hits]), scope),
        )
        rows_by_id = {row["id"]: row for row in rows}
        if as_of is not None:
            then = self._as_of.memories_by_entry(list(rows_by_id), scope, as_of)
            return [(rows_by_id[hit.source], hit, then[hit.source]) for hit in hits if hit.source in then]
        rows_of_hits = [(rows_by_id[hit.source], hit) for hit in hits if hit.source in rows_by_id]
        return self._current_hits([(row, hit) for row, hit in rows_of_hits if not _is_rejected(row)])

    def _current_hits(self, hits: Sequence[tuple[Row, SourceHit]]) -> list[_Hit]:
        memories = self._memories(list(dict.fromkeys(row["memory"] for row, _ in hits if row["memory"])))
        return [(row, hit, _memory(row, memories)) for row, hit in hits]

    def _newest(self, scope: str, as_of: datetime | None) -> tuple[datetime, int | None]:
        """Return the latest time of any entry, and with `as_of` the last entry that may be found."""
        if as_of is not None:
            return self._as_of.latest_entry(scope, as_of) or (_NEVER, 0)
        newest = self._db.value("SELECT max(timestamp) FROM journal WHERE scope = ?", (scope,))
        return (parse_time(newest) if newest else _NEVER), None

    def _to_hits(self, hits: Sequence[_Hit], query: PreparedQuery | None) -> list[MemoryHit]:
        """Return the found memories, each once, with the score of its best entry."""
        by_reference: dict[str, MemoryHit] = {}
        for row, hit, memory in hits:
            # An entry without a memory is shown as itself.
            texts = dict.fromkeys((memory.text, row["content"]))
            is_relevant = query is not None and any(self._is_relevant(text, hit, query) for text in texts)
            score, parts = hit.score, hit.parts
            sources = tuple(json.loads(row["sources"]))
            before = by_reference.get(memory.reference)
            if before is not None:
                if before.score >= score:
                    score, parts = before.score, before.parts
                is_relevant = is_relevant or before.is_relevant
                sources = tuple(sorted({*before.sources, *sources}))
            by_reference[memory.reference] = MemoryHit(memory, score, is_relevant, sources, parts)
        return list(by_reference.values())

    def _with_successors(self, recalled: Sequence[MemoryHit], scope: str, as_of: datetime | None) -> list[MemoryHit]:
        """Insert the successor of each outdated hit just above it, unless it was found with a better rank."""
        best = {hit.memory.id: hit for hit in recalled if hit.memory.id}
        for hit in recalled:
            by = hit.memory.superseded_by
            if not by:
                continue
            score, successor = hit.score + _SUPERSEDED_PENALTY, best.get(by)
            if successor is not None:
                best[by] = replace(
                    successor, score=max(score, successor.score), is_relevant=successor.is_relevant or hit.is_relevant
                )
            elif (after := self._successor(by, scope, as_of)) is not None:
                best[by] = MemoryHit(after[0], score, hit.is_relevant, after[1])
        return [*best.values(), *(hit for hit in recalled if not hit.memory.id)]

    def _successor(self, memory_id: str, scope: str, as_of: datetime | None) -> tuple[Memory, tuple[int, ...]] | None:
        """Return a memory and the messages of its first entry."""
        if as_of is not None:
            then = self._as_of.find_memory(memory_id, scope, as_of)
            of = then and self._db.row("SELECT sources FROM journal WHERE id = ?", then.entries[:1])
            return (then, tuple(json.loads(of["sources"]))) if then and of else None
        row = self._db.row(f"{_SELECT} WHERE c.memory_id = ? AND j.scope = ? ORDER BY j.id LIMIT 1", (memory_id, scope))
        return (_memory(row, self._memories([memory_id])), tuple(json.loads(row["sources"]))) if row else None


def _is_rejected(row: Row) -> bool:
    """Return whether the sleep cycle that made it was undone. What a person or a tool wrote stays valid."""
    if row["settled"] is None or row["memory"]:
        return False
    return bool(row["note"] != UNDONE_NOTE or row["settled_in"] == row["cycle"])


def _memory(row: Row, memories: Mapping[str, Memory]) -> Memory:
    """Return the memory of an entry, or the entry itself if it has none."""
    if row["memory"] in memories and memories[row["memory"]].scope == row["scope"]:
        memory = memories[row["memory"]]
        if memory.until is not None or row["until"] is None:
            return memory
        return replace(memory, until=parse_time(row["until"]), superseded_by=row["by_memory"] or "")
    until = parse_time(row["until"]) if row["until"] else None
    return replace(
        entry_as_memory(read_entry(row)), id=row["memory"] or "", until=until, superseded_by=row["by_memory"] or ""
    )


def _penalty(memory: Memory, newest: datetime) -> float:
    """Return how much a hit's rank is lowered for being outdated and, with a small weight, for its age."""
    age = min(1.0, max(timedelta(), newest - memory.said_at) / _AGE_LIMIT)
    return _AGE_WEIGHT * age * (1 - memory.importance) + (_SUPERSEDED_PENALTY if memory.until is not None else 0.0)


def _of_the_time(recalled: Iterable[MemoryHit], after: datetime | None, before: datetime | None) -> Iterable[MemoryHit]:
    for hit in recalled:
        memory = hit.memory
        score = hit.score + (_SUPERSEDED_PENALTY if memory.until is not None else 0.0)
        too_late = before is not None and memory.said_at >= before
        too_early = after is not None and memory.said_at < after
        if not too_late and not too_early:
            yield replace(hit, score=score + _OF_THE_TIME)
        elif too_late:
            if names_date_within(memory.text, after, before):
                yield replace(hit, score=score + _OF_THE_TIME / 2)
        elif memory.until is None or (after is not None and memory.until > after):
            yield replace(hit, score=score)
