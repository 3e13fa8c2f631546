"""From a question's words to the few hundred messages worth reading, out of any number.

The plan, so that what a search costs does not grow with the history:

1. How common each word is, is estimated from its newest postings, a bounded number of them.
2. *Rare* words, the rarest first while their postings together fit a budget, are looked up whole: every message with
   any of them is a candidate.
3. *Common* words bring no candidates by themselves. They are looked up only within the messages with a rare word and,
   unless what was found is better than all of them together could be, with one another: messages that have all of
   them, all but one, or any two within 30 words. Where even that finds nothing, the newest messages with any of them.

FTS5 intersects postings at some ten million a second, and ranks by bm25 half a million a second. So no bm25 here: a
candidate is worth the idf of the words it has, and a part of those that its neighbours have (a question and its answer
stand next to each other). The exact score is made later, from the words themselves (`ranking.py`).

What always holds: scope, session, roles, dates and what was undone are conditions of the SQL that lets a candidate
through; nothing else can add one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import combinations
from sqlite3 import Row

from assistant.messages import Role
from assistant.store.database import Database
from assistant.store.index import KINDS_WITH_WORDS
from assistant.store.terms import QueryWord, either, near, scope_term, together
from assistant.store.text import stamp

_CLOCK_ERROR = timedelta(days=1)
_NEAR = 30
_NEIGHBOUR_SHARE = 0.4
_BATCH = 400
_MOST_BATCHES = 12

COLUMNS = "id, session, generation, kind, role, seq, ts, byte_start, byte_end"
"""What is read of an index row."""

_SAMPLE = (
    "SELECT count(*) AS found, min(id) AS oldest FROM (SELECT rowid AS id FROM messages_fts WHERE messages_fts MATCH ?"
    " AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)"
)
_POSTINGS = (
    "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Bounds of the plan, in postings unless said otherwise. Larger finds more and costs more."""

    sample: int = 4_000
    rare: int = 20_000
    together: int = 2_000
    intersected: int = 3_000_000
    common_words: int = 6
    candidates: int = 200


@dataclass(frozen=True, slots=True)
class Within:
    """What a search may see. Empty `roles` sees nothing; times as in `History.search`."""

    scope: str
    roles: Sequence[Role] = ("user", "assistant", "tool")
    after: datetime | None = None
    before: datetime | None = None
    session: str | None = None

    @property
    def condition(self) -> tuple[str, list[str]]:
        """SQL over the columns of `messages`, and its values."""
        parts = ["scope = ?", "hidden_by IS NULL", _any_of("kind", KINDS_WITH_WORDS), _any_of("role", self.roles)]
        values = [self.scope, *KINDS_WITH_WORDS, *self.roles]
        if self.session is not None:
            parts.append("session = ?")
            values.append(self.session)
        if self.after is not None:
            parts.append("ts >= ?")
            values.append(stamp(self.after))
        if self.before is not None:
            parts.append("ts < ?")
            values.append(stamp(self.before))
        return " AND ".join(parts), values


def _any_of(column: str, values: Sequence[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(values))})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that may be among the best, and which of the question's words (by index) the full text has of it."""

    row: Row
    words: frozenset[int]


@dataclass(frozen=True, slots=True)
class Found:
    """`idf` of each of the question's words (0 for one that nobody said), the candidates best first; `rows` is about
    how many messages were looked at."""

    idf: tuple[float, ...]
    candidates: list[Candidate]
    rows: int


@dataclass(frozen=True, slots=True)
class _Range:
    """Message ids that a search looks at, about how many rows that is, and the full-text condition that narrows it to
    a small scope ("" for none)."""

    first: int
    last: int
    rows: int
    narrowed: str = ""


class Candidates:
    """The first stage of a search over one database."""

    def __init__(self, database: Database, plan: Plan | None = None) -> None:
        self._db = database
        self._plan = plan or Plan()

    def find(self, words: Sequence[QueryWord], within: Within) -> Found:
        """The messages most worth reading for a question of these words, at most `Plan.candidates`."""
        span = self._range(within)
        counts = [self._count(word.match, span) for word in words]
        rows = max(span.rows, *counts)
        idf = tuple(math.log(1 + (rows - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts)
        worth = _Worth(idf)
        masks = self._masks(words, counts, worth, span)
        best = self._let_through(worth.best(masks, _BATCH * _MOST_BATCHES), within)
        return Found(idf, [Candidate(row, worth.words(masks[row["id"]])) for row in best], rows)

    # --------------------------------------------------------------------------------------------------- the range

    def _range(self, within: Within) -> _Range:
        newest = self._db.row("SELECT max(id) AS id FROM messages")
        first, last = 1, (newest["id"] or 0) if newest else 0
        if within.after is not None:
            first = self._first_at(within.after - _CLOCK_ERROR, last)
        if within.before is not None:
            last = self._first_at(within.before + _CLOCK_ERROR, last)
        whole = _Range(first, last, max(0, last - first + 1))
        own = f'"{scope_term(within.scope)}"'
        in_scope = self._count(own, whole)
        return _Range(first, last, in_scope, own) if 0 < in_scope < whole.rows / 2 else whole

    def _first_at(self, moment: datetime, last: int) -> int:
        """About the first id said at `moment` or later: ids grow with time, so that halving finds it. A clock that
        was set back bends this by as much; the exact times are compared again on each candidate."""
        low, high, wanted = 1, last + 1, stamp(moment)
        while low < high:
            middle = (low + high) // 2
            row = self._db.row("SELECT id, ts FROM messages WHERE id >= ? ORDER BY id LIMIT 1", (middle,))
            if row is None or row["ts"] >= wanted:
                high = middle
            else:
                low = row["id"] + 1
        return low

    # ------------------------------------------------------------------------------------------------ the postings

    def _count(self, match: str, span: _Range) -> int:
        """How many rows of the range match, estimated from the newest ones."""
        expression = together([part for part in (span.narrowed, match) if part])
        row = self._db.row(_SAMPLE, (expression, span.first, span.last, self._plan.sample))
        found: int = row["found"] if row else 0
        if row is None or found < self._plan.sample:
            return found
        return max(found, int(found * (span.last - span.first + 1) / (span.last - row["oldest"] + 1)))

    def _postings(self, parts: Sequence[str], span: _Range, limit: int) -> list[int]:
        """The newest rows of the range that fit all the parts."""
        expression = together([part for part in (span.narrowed, *parts) if part])
        return [row[0] for row in self._db.rows(_POSTINGS, (expression, span.first, span.last, limit))]

    def _masks(self, words: Sequence[QueryWord], counts: Sequence[int], worth: _Worth, span: _Range) -> dict[int, int]:
        """Message id -> the bits of the words that it is known to have."""
        by_rarity = sorted((i for i in range(len(words)) if counts[i]), key=lambda i: counts[i])
        rare: list[int] = []
        room = self._plan.rare
        for i in by_rarity:
            if counts[i] > room:
                break
            rare.append(i)
            room -= counts[i]
        common = by_rarity[len(rare) :]
        masks: dict[int, int] = {}
        left = self._plan.rare
        for i in rare:
            # An estimate may have been too low; the budget holds all the same.
            found = self._postings([words[i].match], span, max(left, self._plan.sample))
            left -= len(found)
            _mark(masks, found, 1 << i)
        if rare:
            any_rare = either([words[i] for i in rare])
            for i in common[: self._plan.common_words]:
                _mark(masks, self._postings([any_rare, words[i].match], span, self._plan.rare), 1 << i)
        self._mark_together(masks, words, self._affordable(common, counts), worth, span)
        return masks

    def _affordable(self, common: Sequence[int], counts: Sequence[int]) -> Sequence[int]:
        """The rarest of the common words whose intersections may be looked up; two of them in any case."""
        chosen = list(common[: self._plan.common_words])
        while len(chosen) > 2 and (len(chosen) + 1) * sum(counts[i] for i in chosen) > self._plan.intersected:
            chosen.pop()
        return chosen

    def _mark_together(
        self, masks: dict[int, int], words: Sequence[QueryWord], common: Sequence[int], worth: _Worth, span: _Range
    ) -> None:
        """Candidates that have several common words: near each other any two, anywhere all or all but one."""
        everything = sum(1 << i for i in common)
        if not common or worth.of(everything) <= worth.least_of_best(masks, self._plan.candidates):
            return
        for size in range(max(2, len(common) - 1), len(common) + 1):
            for chosen in combinations(common, size):
                matches = [words[i].match for i in chosen]
                _mark(masks, self._postings(matches, span, self._plan.together), sum(1 << i for i in chosen))
        for one, other in combinations(common, 2):
            beside = near(words[one], words[other], _NEAR)
            _mark(masks, self._postings([beside], span, self._plan.together), 1 << one | 1 << other)
        if not masks:
            for i in common:
                _mark(masks, self._postings([words[i].match], span, self._plan.candidates), 1 << i)

    # -------------------------------------------------------------------------------------------------- the filter

    def _let_through(self, order: Sequence[int], within: Within) -> list[Row]:
        condition, values = within.condition
        kept: list[Row] = []
        for begin in range(0, len(order), _BATCH):
            batch = order[begin : begin + _BATCH]
            sql = f"SELECT {COLUMNS}, 1 AS shown FROM messages WHERE {_any_of('id', [''] * len(batch))} AND {condition}"
            rows = {row["id"]: row for row in self._db.rows(sql, (*batch, *values))}
            kept += [rows[i] for i in batch if i in rows]
            if len(kept) >= self._plan.candidates:
                break
        return kept[: self._plan.candidates]


def _mark(masks: dict[int, int], rows: Iterable[int], bits: int) -> None:
    for row in rows:
        masks[row] = masks.get(row, 0) | bits


class _Worth:
    """What sets of words are worth: the sum of their idf."""

    def __init__(self, idf: Sequence[float]) -> None:
        self._idf = idf
        self._sums: dict[int, float] = {}

    def of(self, mask: int) -> float:
        known = self._sums.get(mask)
        if known is None:
            known = self._sums[mask] = sum(idf for i, idf in enumerate(self._idf) if mask >> i & 1)
        return known

    def words(self, mask: int) -> frozenset[int]:
        return frozenset(i for i in range(len(self._idf)) if mask >> i & 1)

    def best(self, masks: Mapping[int, int], count: int) -> list[int]:
        """The `count` best rows by what they have, and a part of what their neighbours by id add to it; among equals
        the newest first."""
        get, of = masks.get, self.of
        keyed = []
        for row, own in masks.items():
            beside = (get(row - 1, 0) | get(row - 2, 0) | get(row + 1, 0) | get(row + 2, 0)) & ~own
            keyed.append((of(own) + _NEIGHBOUR_SHARE * of(beside) if beside else of(own), row))
        return [row for _, row in nlargest(count, keyed)]

    def least_of_best(self, masks: Mapping[int, int], count: int) -> float:
        """The worth of the `count`-th best row; 0 while there are fewer."""
        best = nlargest(count, map(self.of, masks.values()))
        return best[-1] if len(best) == count else 0.0
