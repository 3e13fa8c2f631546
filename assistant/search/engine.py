"""Ranks the units of a collection for a question.

Two stages, so that the cost of a search hardly grows with the collection: a cheap score over the postings of the
question's words and of similar words (words in more than 30 % of all units select no candidates), spread to
neighbouring units, plus the units with the most similar vectors; then the exact score (`scoring`) of the units of the
best thousand messages. A small collection is scored completely.

Invariant: scope, session, roles, dates and removal determine the candidates; nothing else can add one, and the
neighbours of a candidate are from its own stream (I10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from assistant.core.dataclass import dataclass
from assistant.core.text import is_spaceless
from assistant.search.candidates import RoughTerms, around_units, choose_candidates
from assistant.search.dtypes import (
    Bools,
    EmbedTexts,
    Floats,
    Ints,
    TermOccurrences,
    UnitRows,
    epoch_second,
    kind_number,
)
from assistant.search.embedding_cache import EmbeddingCache
from assistant.search.index import SearchIndex
from assistant.search.index_values import IndexStore, SearchExplanation, SearchFilter, SourceHit
from assistant.search.likeness import QuestionVectors, measure_likeness, rank_apart
from assistant.search.query import FindStems, ParsedQuestion, SearchLimits, parse_question
from assistant.search.scoring import (
    NEIGHBOUR_REACH,
    AskedFor,
    CandidateScores,
    CandidateTable,
    QueryTerm,
    score_candidates,
)
from assistant.search.units import asks_for_something
from assistant.search.vocabulary import normalise_rows

# Minimum cosine for a hit by meaning alone: without a word of the question in or near it; if none of the words is
# known; or if everything is a candidate. Unknown words without a question may not be words at all.
_LIKE_ALONE, _LIKE_ALONE_UNSAID = 0.1, 0.2
# Of so many of the best, those that say the same as a better one come later.
_PUT_APART = 64


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A question with its candidates."""

    candidates: Ints  # numbers of units
    table: CandidateTable
    terms: list[QueryTerm]
    stems: list[str]  # of the terms
    words: dict[str, str]  # of the question's own stems
    asked_for: AskedFor
    sources: int  # number of sources in the collection
    is_small: bool  # whether everything permitted is a candidate
    is_spaceless: bool  # whether it has words written without spaces


class SearchEngine:
    """Searches one collection; not thread-safe."""

    def __init__(
        self,
        store: IndexStore,
        stems: FindStems,
        embed: EmbedTexts,
        limits: SearchLimits,
        questions: EmbeddingCache | None = None,
        *,
        is_word: Callable[[str], bool] = lambda word: False,
    ) -> None:
        """`questions` embeds questions like `embed`, and may be shared by several engines; `is_word` tells words that
        exist from misspelt ones."""
        self.index = SearchIndex(store, stems, embed)
        self._stems = stems
        self._questions = questions or EmbeddingCache(embed)
        self._limits = limits
        self._is_word = is_word

    def search(self, question: str, where: SearchFilter, *, limit: int = 10) -> list[SourceHit]:
        """Return hits, best first, each source once. Raises `StoreError`."""
        asked = self.prepare(question, where)
        return [] if asked is None else self._best_hits(question, asked, _scores(asked), limit)

    def explain(self, question: str, where: SearchFilter, *, limit: int = 10) -> SearchExplanation:
        """Return the hits of `search` with how they were found. Raises `StoreError`."""
        asked = self.prepare(question, where)
        if asked is None:
            return SearchExplanation({}, (), self.index.source_count, 0, 0, [])
        scores = _scores(asked)
        like: dict[str, list[str]] = {word: [] for word in asked.words.values()}
        for stem, term in zip(asked.stems, asked.terms, strict=True):
            own = asked.stems[term.stands_for]
            if stem != own:
                like[asked.words[own]].append(stem)
        hits = self._best_hits(question, asked, scores, limit, with_parts=True)
        by_words = int((scores.bm25 > 0).sum())
        by_meaning = len(asked.candidates) - by_words
        return SearchExplanation(like, asked.asked_for.named(), asked.sources, by_words, by_meaning, hits)

    def _best_hits(
        self, question: str, asked: PreparedSearch, scores: CandidateScores, limit: int, *, with_parts: bool = False
    ) -> list[SourceHit]:
        likeness = asked.table.likeness.plain[asked.table.around[NEIGHBOUR_REACH]]
        like_enough: Bools = np.ones(len(scores.total), bool)
        has_words = scores.bm25 > 0
        if asked.is_small or not has_words.any():
            # Embeddings are unreliable for scripts without spaces, whose words are found in pieces.
            least = _LIKE_ALONE if has_words.any() or asks_for_something(question) else _LIKE_ALONE_UNSAID
            like_enough = has_words | ((likeness >= least) & (not asked.is_spaceless))
        return self._ranked(asked, scores, likeness, like_enough, limit, with_parts=with_parts)

    def prepare(self, question: str, where: SearchFilter) -> PreparedSearch | None:
        """Return what to score; None if nothing. Raises `StoreError`."""
        allowed = self._allowed(where)
        if allowed is None or not allowed.any():
            return None
        parsed = parse_question(question, self._stems)
        if not parsed.words:
            return None
        plain, *of_words = self._questions.embed([question, *parsed.words.values()])
        vectors = dict(zip(parsed.words, of_words, strict=True))
        terms = self._terms(parsed, vectors)
        centred = self._centred(plain)
        sources = {stem: self.index.source_count_of(stem) for stem in terms}
        found = TermOccurrences(list(terms), list(sources.values()), self.index.occurrences_of)
        is_small = bool(np.count_nonzero(allowed) <= self._limits.small_collection)
        candidates = np.flatnonzero(allowed) if is_small else self._candidates(terms, sources, found, allowed, centred)
        if not len(candidates):
            return None
        weighed = self._weighed(terms, sources, parsed)
        directions = QuestionVectors(plain, centred, self._vector_of_words(vectors, terms, weighed))
        table = self._table(candidates, list(terms), found, parsed, directions)
        return PreparedSearch(
            candidates,
            table,
            weighed,
            list(terms),
            parsed.words,
            _asked_for(parsed),
            self.index.source_count,
            is_small,
            any(map(is_spaceless, parsed.words)),
        )

    def _vector_of_words(
        self, vectors: Mapping[str, Floats], terms: dict[str, tuple[float, str]], weighed: list[QueryTerm]
    ) -> Floats:
        """Return the sum of the vectors of the question's own words by idf, without the mean of all units, of length
        1."""
        own = {stem: term.idf for (stem, (_, of)), term in zip(terms.items(), weighed, strict=True) if stem == of}
        idf = np.array(list(own.values()), np.float32)
        words = idf @ normalise_rows(np.stack([vectors[stem] for stem in own]))
        return self._centred(words / max(float(np.linalg.norm(words)), 1e-6))

    def _centred(self, vector: Floats) -> Floats:
        """Return a vector without the mean of all units, of length 1."""
        centred = vector - self.index.mean
        return centred / max(float(np.linalg.norm(centred)), 1e-6)

    def source_counts(self, words: Sequence[str]) -> list[int]:
        """Return of each word how many sources have it in any form, or have a speaker of that name."""
        stems = self._stems(words)
        return [self._source_count(word, stems[word].split()) for word in words]

    def _source_count(self, word: str, stems: Sequence[str]) -> int:
        if len(word) == 1 and is_spaceless(word):
            return sum(self.index.source_count_of(stem) for stem in self.index.stems_starting_with(word))
        return max(self._count_said_by(stems), *map(self.index.source_count_of, stems), 0)

    def _count_said_by(self, stems: Sequence[str]) -> int:
        speakers = [number for number, name in self.index.speaker_stems().items() if name.intersection(stems)]
        if not speakers:
            return 0
        return int(
            self.index.units.mask_where(lambda rows: np.isin(rows["speaker"], speakers) & (rows["part"] == 0)).sum()
        )

    # ------------------------------------------------------------------------------------------------------- candidates

    def _allowed(self, where: SearchFilter) -> Bools | None:
        scope = self.index.name_number(where.scope)
        if scope is None:
            return None
        roles = {self.index.name_number(f"role {role}") for role in where.roles}
        allowed = self.index.units.mask_of_kinds([kind_number(scope, role) for role in roles if role is not None])
        stream = self.index.name_number(f"{where.scope}\n{where.stream}") or 0

        def is_meant(rows: UnitRows) -> Bools:
            meant: Bools = np.ones(len(rows), bool)
            if where.stream:
                meant &= rows["stream"] == stream
            if where.after is not None:
                meant &= rows["second"] >= epoch_second(where.after)
            if where.before is not None:
                meant &= rows["second"] <= epoch_second(where.before)
            if where.last is not None:
                meant &= rows["source"] <= where.last
            return meant

        if where.stream or any(bound is not None for bound in (where.after, where.before, where.last)):
            allowed &= self.index.units.mask_where(is_meant)
        return allowed

    def _terms(self, question: ParsedQuestion, vectors: Mapping[str, Floats]) -> dict[str, tuple[float, str]]:
        """Return (weight, index of the question's stem it stands for) for each stem to search."""
        names = self._speaker_stems()
        own = {stem: word for stem, word in question.words.items() if stem not in names} or question.words
        terms = {stem: (1.0, stem) for stem in own}
        like = self.index.vocabulary.similar_stems(own, vectors, exclude=names, is_word=self._is_word)
        for stem in own:
            if len(stem) == 1 and is_spaceless(stem):
                like.update(dict.fromkeys(self.index.stems_starting_with(stem), (1.0, stem)))
        return {**{stem: term for stem, term in like.items() if stem not in terms}, **terms}

    def _weighed(
        self, terms: dict[str, tuple[float, str]], sources: Mapping[str, int], question: ParsedQuestion
    ) -> list[QueryTerm]:
        """Return the terms with their idf; all terms for one stem of the question count together."""
        rows = {stem: row for row, stem in enumerate(terms)}
        together = dict.fromkeys(terms, 0.0)
        for stem, (weight, stands_for) in terms.items():
            together[stands_for] += weight * sources[stem]
        return [
            QueryTerm(
                idf := self._idf(stem, sources[stem], question),
                weight,
                rows[stands_for],
                min(idf, self._plain_idf(together[stem])) if stem == stands_for else idf,
                stem in question.identifier_stems,
            )
            for stem, (weight, stands_for) in terms.items()
        ]

    def _candidates(
        self,
        terms: dict[str, tuple[float, str]],
        sources: Mapping[str, int],
        found: TermOccurrences,
        allowed: Bools,
        vector: Floats,
    ) -> Ints:
        """Return the numbers of the units to score exactly, in order."""
        worth = [weight * self._plain_idf(sources[stem]) for stem, (weight, _) in terms.items()]
        rough = RoughTerms(list(sources.values()), worth, found)
        return choose_candidates(self.index, self._limits, rough, allowed, vector)

    # ------------------------------------------------------------------------------------------------------------ table

    def _table(
        self,
        candidates: Ints,
        stems: Sequence[str],
        found: TermOccurrences,
        question: ParsedQuestion,
        directions: QuestionVectors,
    ) -> CandidateTable:
        index = self.index
        around = around_units(index, candidates)
        units = index.distinct(around) if index.units.has_neighbours else candidates
        places = np.empty(index.count + 1, np.int32)  # the last is for no unit
        places[units], places[-1] = np.arange(len(units)), -1
        meta = index.units.rows_of(units)
        own = meta.take(places[candidates])
        seconds = own["second"].astype(np.float32)
        span = max(1.0, float(seconds.max() - seconds.min()))
        return CandidateTable(
            places.take(around).astype(np.intp),
            found.counts_in(units),
            self._named(own, stems, question),
            meta["words"].astype(np.float32),
            meta["form"],
            own["first_person"],
            measure_likeness(index.vectors(units), index.mean, directions),
            self._fits(own, question),
            own["role"] == (self.index.name_number("role assistant") or 0),
            (seconds - seconds.min()) / span,
        )

    def _named(self, own: NDArray[np.void], terms: Sequence[str], question: ParsedQuestion) -> Bools:
        """Return (terms, n): whether a term names the date of a candidate."""
        named = np.zeros((len(terms), len(own)), bool)
        for row, stem in enumerate(terms):
            part = question.dates.get(stem)
            if part is not None:
                named[row] = date_parts(own["day"], part[0]) == part[1]
        return named

    def _fits(self, own: NDArray[np.void], question: ParsedQuestion) -> Bools:
        """Return (n): whether a candidate was said by the person the question is about."""
        about = self._speakers_named(question)
        if about:
            return np.isin(own["speaker"], about)
        role = "assistant" if question.about_assistant else "user" if question.about_user else ""
        fits: Bools = own["role"] == (self.index.name_number(f"role {role}") or 0) if role else np.zeros(len(own), bool)
        return fits & (own["speaker"] == 0) if role == "user" else fits

    # ------------------------------------------------------------------------------------------------------------ names

    def _speaker_stems(self) -> frozenset[str]:
        return frozenset(stem for stems in self.index.speaker_stems().values() for stem in stems)

    def _speakers_named(self, question: ParsedQuestion) -> list[int]:
        return [number for number, stems in self.index.speaker_stems().items() if stems & question.words.keys()]

    def _idf(self, stem: str, sources: int, question: ParsedQuestion) -> float:
        if stem in question.dates:
            kind, number = question.dates[stem]
            of_date = self.index.units.mask_where(
                lambda rows: (date_parts(rows["day"], kind) == number) & (rows["part"] == 0)
            )
            sources = max(sources, int(of_date.sum()))
        return self._plain_idf(sources)

    def _plain_idf(self, sources: float) -> float:
        return math.log(1 + (max(self.index.source_count - sources, 0) + 0.5) / (sources + 0.5))

    def _ranked(
        self,
        asked: PreparedSearch,
        scores: CandidateScores,
        likeness: Floats,
        like_enough: Bools,
        limit: int,
        *,
        with_parts: bool,
    ) -> list[SourceHit]:
        order = np.argsort(-scores.total, kind="stable")
        order = order[like_enough[order]]
        sources = self.index.units.rows_of(asked.candidates)["source"][order].tolist()
        first: dict[int, int] = {}  # where each source comes first
        for place, source in enumerate(sources):
            if source not in first:
                first[source] = place
                if len(first) == max(limit, _PUT_APART):
                    break
        chosen = order[list(first.values())]
        ranked = self._put_apart(asked.table, chosen, scores.total[chosen].tolist())[:limit]
        chosen, sources = chosen[[place for place, _ in ranked]], list(first)
        parts = scores.parts_of(chosen, [score for _, score in ranked]) if with_parts else [{}] * len(ranked)
        columns = (column[chosen].tolist() for column in (likeness, scores.nearby))
        return [
            SourceHit(sources[place], score, like, of_one, nearby)
            for (place, score), of_one, like, nearby in zip(ranked, parts, *columns, strict=True)
        ]

    def _put_apart(self, table: CandidateTable, chosen: Ints, totals: list[float]) -> list[tuple[int, float]]:
        """Return the places of the best units with their scores, best first. Memories are near each other in meaning
        without saying the same, and were told apart when they were made."""
        ranked = list(enumerate(totals))
        if len(ranked) < 2 or not self.index.units.has_neighbours:
            return ranked
        units = table.around[NEIGHBOUR_REACH][chosen[:_PUT_APART]]
        return rank_apart(totals[:_PUT_APART], table.likeness.among(units)) + ranked[_PUT_APART:]


def _scores(asked: PreparedSearch) -> CandidateScores:
    return score_candidates(asked.table, asked.terms, asked.asked_for, sources=asked.sources)


def _asked_for(question: ParsedQuestion) -> AskedFor:
    return AskedFor(
        question.asks_time,
        question.asks_number,
        question.asks_name,
        question.about_user,
        question.about_assistant,
    )


def date_parts(days: NDArray[np.int32], kind: str) -> NDArray[np.int64]:
    """Return the weekday (1 Monday to 7), day of the month, month or year of ordinal days (1: 1 January of year 1)."""
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
