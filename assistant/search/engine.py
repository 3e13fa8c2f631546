"""From a question to the units that answer it best, out of any number.

Two stages, so that what a search costs hardly grows with the collection: a cheap score over the postings of the
question's words and of words that mean about the same (those that more than 30 % of all units have bring nobody in),
spread to neighbours; then the exact score (`scoring`) of the best thousand. A small collection is scored as a whole.

What always holds: scope, session, roles, dates and what is gone decide who is a candidate; nothing else can add one,
and what stands around a candidate is of its own stream (I10).
"""

from __future__ import annotations

import math
from datetime import date

import numpy as np
from numpy.typing import NDArray

from assistant.core.text import is_spaceless
from assistant.search.dtypes import Bools, EmbedTexts, Floats, Ints
from assistant.search.index import SearchIndex, epoch_second
from assistant.search.index_values import IndexStore, SearchFilter, SourceHit
from assistant.search.query import FindStems, ParsedQuestion, SearchLimits, parse_question
from assistant.search.scoring import (
    NEIGHBOUR_REACH,
    NEIGHBOUR_WEIGHTS,
    AskedFor,
    CandidateScores,
    CandidateTable,
    QueryTerm,
    score_candidates,
)

_K1 = 1.2
_NEVER_COMMON = 50
_NEWER = 1e-3
# The cosine from which something without any word of the question is found for its meaning; and where nobody said any of
# its words, so that what nobody spoke of is not found.
_LIKE, _LIKE_ALONE, _NOTHING = 0.1, 0.2, 2.0


class SearchEngine:
    """Searches one collection. Not for several threads at once."""

    def __init__(self, store: IndexStore, stems: FindStems, embed: EmbedTexts, limits: SearchLimits) -> None:
        self.index = SearchIndex(store, stems, embed)
        self._stems = stems
        self._embed = embed
        self._limits = limits

    def search(self, question: str, where: SearchFilter, *, limit: int = 10) -> list[SourceHit]:
        """Best first, each source once. Raises `StoreError`."""
        index = self.index
        parsed = parse_question(question, self._stems)
        allowed = self._allowed(where)
        if not parsed.words or allowed is None or not allowed.any():
            return []
        terms = self._terms(parsed)
        plain, centred = self._vectors_of(question)
        candidates = self._candidates(terms, allowed, centred)
        if not len(candidates):
            return []
        table = self._table(candidates, terms, parsed)
        scores = score_candidates(
            table, self._weighed(terms, parsed), centred, _asked_for(parsed), sources=self.index.source_count
        )
        likeness = table.vectors[table.around[:, NEIGHBOUR_REACH]] @ plain
        # Meaning says little of scripts without spaces, whose words are found piece by piece.
        is_alone = not (scores.bm25 > 0).any()
        least = _NOTHING if is_alone and any(map(is_spaceless, parsed.words)) else _LIKE_ALONE if is_alone else _LIKE
        return self._ranked(candidates, scores, likeness, least, limit)

    def _vectors_of(self, question: str) -> tuple[Floats, Floats]:
        """The vector of a question as it is, and without what all units have in common, of length 1."""
        plain = self._embed([question])[0]
        centred = plain - self.index.mean
        return plain, centred / max(float(np.linalg.norm(centred)), 1e-6)

    def source_count(self, word: str) -> int:
        """How many sources have a word, in any form of it."""
        if len(word) == 1 and is_spaceless(word):
            return sum(self.index.source_count_of(stem) for stem in self.index.stems_starting_with(word))
        return max((self.index.source_count_of(stem) for stem in self._stems([word])[word].split()), default=0)

    # ------------------------------------------------------------------------------------------------------- candidates

    def _allowed(self, where: SearchFilter) -> Bools | None:
        meta, scope = self.index.meta, self.index.name_number(where.scope)
        if scope is None:
            return None
        allowed: Bools = (meta["scope"] == scope) & (meta["gone"] == 0)
        if where.stream:
            allowed &= meta["stream"] == (self.index.name_number(f"{where.scope}\n{where.stream}") or 0)
        roles = [self.index.name_number(f"role {role}") or -1 for role in where.roles]
        allowed &= np.isin(meta["role"], roles)
        if where.after is not None:
            allowed &= meta["second"] >= epoch_second(where.after)
        if where.before is not None:
            allowed &= meta["second"] <= epoch_second(where.before)
        if where.last is not None:
            allowed &= meta["source"] <= where.last
        return allowed

    def _terms(self, question: ParsedQuestion) -> dict[str, tuple[float, str]]:
        """(weight, the question's stem that it stands for) of each stem to look for."""
        names = self._speaker_stems()
        own = {stem: word for stem, word in question.words.items() if stem not in names} or question.words
        terms = {stem: (1.0, stem) for stem in own}
        like = self.index.vocabulary.similar_stems(own, exclude=names)
        for stem in own:
            if len(stem) == 1 and is_spaceless(stem):
                like.update(dict.fromkeys(self.index.stems_starting_with(stem), (1.0, stem)))
        return {**{stem: term for stem, term in like.items() if stem not in terms}, **terms}

    def _weighed(self, terms: dict[str, tuple[float, str]], question: ParsedQuestion) -> list[QueryTerm]:
        """The terms with their idf; what stands for one stem of the question is as common as all of it together."""
        rows = {stem: row for row, stem in enumerate(terms)}
        together = dict.fromkeys(terms, 0.0)
        for stem, (weight, stands_for) in terms.items():
            together[stands_for] += weight * self.index.source_count_of(stem)
        return [
            QueryTerm(
                idf := self._idf(stem, question),
                weight,
                rows[stands_for],
                min(idf, self._plain_idf(together[stem])),
                stem in question.identifier_stems,
            )
            for stem, (weight, stands_for) in terms.items()
        ]

    def _candidates(self, terms: dict[str, tuple[float, str]], allowed: Bools, vector: Floats) -> Ints:
        """Numbers of the units worth an exact score, in order."""
        index = self.index
        if int(allowed.sum()) <= self._limits.small_collection:
            return np.flatnonzero(allowed)
        rough = np.zeros(index.count, np.float32)
        common = max(self._limits.common_share * index.source_count, _NEVER_COMMON)
        by_source_count = sorted((index.source_count_of(stem), stem) for stem in terms)
        rarest = next((sources for sources, _ in by_source_count if sources), 0)
        for sources, stem in by_source_count:
            if 0 < sources <= max(common, rarest):
                occurrences = index.occurrences(stem)
                worth = np.float32(terms[stem][0] * self._plain_idf(sources) * (_K1 + 1))
                rough[occurrences.units] += worth * occurrences.counts / (occurrences.counts + np.float32(_K1))
        # What is not allowed may be a neighbour of what is, in the same scope; among equals the newer one is taken.
        rough[index.meta["scope"] != index.meta["scope"][np.argmax(allowed)]] = 0
        rough *= np.where(allowed, np.float32(1), np.float32(0.5))
        rough *= np.linspace(1 - _NEWER, 1, index.count, dtype=np.float32)
        seeds = _largest(rough, self._limits.seed_units)
        around = self._around(seeds)
        reached = np.unique(around[around >= 0])
        nearby = self._around(reached)
        spread = (np.where(nearby >= 0, rough[nearby], 0) * NEIGHBOUR_WEIGHTS).sum(axis=1)
        spread[~allowed[reached]] = 0
        chosen = reached[_largest(spread, self._limits.scored_units)]
        return np.union1d(chosen, index.nearest(vector, allowed, self._limits.like_units))

    def _around(self, units: Ints) -> Ints:
        """(n, 9) numbers of what stands around units in their streams, -1 for nothing."""
        index = self.index
        around = np.full((len(units), 2 * NEIGHBOUR_REACH + 1), -1, np.intp)
        around[:, NEIGHBOUR_REACH] = units
        meta, following = index.meta, index.following
        for distance in range(1, NEIGHBOUR_REACH + 1):
            for place, step in (
                (NEIGHBOUR_REACH - distance, meta["previous"]),
                (NEIGHBOUR_REACH + distance, following),
            ):
                nearer = around[:, place + (1 if place < NEIGHBOUR_REACH else -1)]
                around[:, place] = np.where(nearer >= 0, step[nearer], -1)
        around[(around >= 0) & (meta["gone"][around] > 0)] = -1
        around[:, NEIGHBOUR_REACH] = units
        return around

    # ------------------------------------------------------------------------------------------------------------ table

    def _table(self, candidates: Ints, terms: dict[str, tuple[float, str]], question: ParsedQuestion) -> CandidateTable:
        index = self.index
        around = self._around(candidates)
        units = np.unique(around[around >= 0])
        counts = np.zeros((len(terms), len(units)), np.float32)
        for row, stem in enumerate(terms):
            occurrences = index.occurrences(stem)
            if len(occurrences.units):
                places = np.minimum(np.searchsorted(occurrences.units, units), len(occurrences.units) - 1)
                counts[row] = np.where(occurrences.units[places] == units, occurrences.counts[places], 0)
        placed = np.where(around >= 0, np.searchsorted(units, around), -1)
        meta = index.meta[units]
        own = index.meta[candidates]
        seconds = own["second"].astype(np.float32)
        span = max(1.0, float(seconds.max() - seconds.min()))
        return CandidateTable(
            placed,
            counts,
            self._named(own, terms, question),
            meta["words"].astype(np.float32),
            meta["form"],
            index.vectors(units),
            index.mean,
            self._fits(own, question),
            self._by_person(own, question),
            (seconds - seconds.min()) / span,
        )

    def _named(self, own: NDArray[np.void], terms: dict[str, tuple[float, str]], question: ParsedQuestion) -> Bools:
        """(terms, n): whether the date of a candidate is what a term names."""
        named = np.zeros((len(terms), len(own)), bool)
        for row, stem in enumerate(terms):
            part = question.dates.get(stem)
            if part is not None:
                named[row] = date_parts(own["day"], part[0]) == part[1]
        return named

    def _fits(self, own: NDArray[np.void], question: ParsedQuestion) -> Bools:
        """(n): whether a candidate was said by whom the question is about."""
        about = self._speakers_named(question)
        if about:
            return np.isin(own["speaker"], about)
        role = "assistant" if question.about_assistant else "user" if question.about_user else ""
        fits: Bools = own["role"] == (self.index.name_number(f"role {role}") or 0) if role else np.zeros(len(own), bool)
        return fits & (own["speaker"] == 0) if role == "user" else fits

    def _by_person(self, own: NDArray[np.void], question: ParsedQuestion) -> Bools:
        """(n): whether a candidate was not said by the assistant, where it speaks too and is not asked for its words."""
        assistant = self.index.name_number("role assistant")
        if assistant is None or question.about_assistant:
            return np.zeros(len(own), bool)
        by_person: Bools = own["role"] != assistant
        return by_person

    # ------------------------------------------------------------------------------------------------------------ names

    def _speaker_stems(self) -> frozenset[str]:
        return frozenset(stem for stems in self.index.speaker_stems().values() for stem in stems)

    def _speakers_named(self, question: ParsedQuestion) -> list[int]:
        return [number for number, stems in self.index.speaker_stems().items() if stems & question.words.keys()]

    def _idf(self, stem: str, question: ParsedQuestion) -> float:
        sources = self.index.source_count_of(stem)
        if stem in question.dates:
            kind, number = question.dates[stem]
            meta = self.index.meta
            sources = max(sources, int(((date_parts(meta["day"], kind) == number) & (meta["part"] == 0)).sum()))
        return self._plain_idf(sources)

    def _plain_idf(self, sources: float) -> float:
        return math.log(1 + (max(self.index.source_count - sources, 0) + 0.5) / (sources + 0.5))

    def _ranked(
        self, candidates: Ints, scores: CandidateScores, likeness: Floats, least: float, limit: int
    ) -> list[SourceHit]:
        """`least` is the likeness of what has none of the words of the question around it."""
        meta = self.index.meta
        ranked: dict[int, SourceHit] = {}
        for place in np.argsort(-scores.total, kind="stable"):
            if scores.bm25[place] <= 0 and likeness[place] < least:
                continue
            source = int(meta["source"][candidates[place]])
            if source not in ranked:
                ranked[source] = SourceHit(source, float(scores.total[place]), float(likeness[place]))
                if len(ranked) == limit:
                    break
        return list(ranked.values())


def _asked_for(question: ParsedQuestion) -> AskedFor:
    return AskedFor(question.asks_time, question.asks_number, question.about_user)


def date_parts(days: NDArray[np.int32], kind: str) -> NDArray[np.int64]:
    """Weekday (1 Monday to 7), day of the month, month or year of ordinal days (1: the first of January of year 1)."""
    dates = (days.astype(np.int64) - _EPOCH).astype("datetime64[D]")
    if kind == "weekday":
        weekdays: NDArray[np.int64] = (days.astype(np.int64) - 1) % 7 + 1
        return weekdays
    months = dates.astype("datetime64[M]")
    if kind == "day":
        days_in: NDArray[np.int64] = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
        return days_in
    if kind == "month":
        return (months.astype(np.int64) % 12 + 1).astype(np.int64)
    return (dates.astype("datetime64[Y]").astype(np.int64) + 1970).astype(np.int64)


_EPOCH = date(1970, 1, 1).toordinal()


def _largest(values: Floats, limit: int) -> Ints:
    """Places of the largest values above 0, at most so many, in no order."""
    above = np.flatnonzero(values > 0)
    if len(above) <= limit:
        return above
    places: Ints = above[np.argpartition(-values[above], limit)[:limit]]
    return places
