"""The index of one collection in memory.

Everything appended is found by the next search; unit numbers never change. Memory is bounded by the vocabulary and, in
a small collection, 46 bytes per unit and 256 for its vector. In a large one, these are in files that the system can
take out of memory (`file_arrays`), with the vectors of the newest 131,072 units; postings and older vectors are read on
demand. Not thread-safe.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo

import numpy as np

from assistant.core.text import WORD, fold_text, split_spaceless_runs
from assistant.search.dtypes import (
    DIMENSIONS,
    POSTING_DTYPE,
    UNIT_DTYPE,
    VECTOR_SCALE,
    Bools,
    ByteVectors,
    EmbedTexts,
    Floats,
    Ints,
    Occurrences,
    UnitRows,
    epoch_second,
    read_postings,
)
from assistant.search.embedded_texts import EmbeddedTexts
from assistant.search.index_values import (
    IndexingStopped,
    IndexPage,
    IndexStore,
    IndexTerm,
    SourceText,
    UnitStem,
    UnsealedUnit,
)
from assistant.search.query import FindStems
from assistant.search.sealed_postings import SealedPostings
from assistant.search.unit_table import UnitTable
from assistant.search.unit_vectors import UnitVectors
from assistant.search.units import (
    REPEATS,
    asks_for_something,
    count_first_person,
    count_stems,
    count_words,
    split_into_units,
    unit_flags,
)
from assistant.search.unsealed import UnsealedUnits, are_counted, count_sources
from assistant.search.vocabulary import Vocabulary

SEAL_AFTER_UNITS = 1_024
# Number of newest units whose vectors stay in memory; those of older ones are read on demand.
_RESIDENT = 1 << 17
# Assumed number of units without a common direction, so that the mean of a small collection has little weight.
_PRIOR = 20.0
# The mean of typical collections has a length of 0.25 to 0.45.
_LONGEST_MEAN = 0.5
# Seconds of silence that end a conversation: earlier messages are not neighbours of later ones.
_SILENCE = 12 * 3_600
_EMPTY = read_postings(np.zeros(0, POSTING_DTYPE))


class SearchIndex:
    def __init__(self, store: IndexStore, stems: FindStems, embed: EmbedTexts, resident: int = _RESIDENT) -> None:
        self._resident = resident
        self.store = store
        self._stems = stems
        self._embed = embed
        self._load()

    def _load(self) -> None:
        contents = self.store.load()
        # Of units until they are in the index, of new words until they are sealed.
        self._embedded_units, self._embedded_words = EmbeddedTexts(self._embed), EmbeddedTexts(self._embed)
        self.read_to = dict(contents.read_to)
        self.units = UnitTable(self.store.map_file, (contents.sealed + len(contents.fresh)) * 5 // 4)
        self._source_count = 0
        for page in contents.pages:
            self._add_rows(np.frombuffer(page, UNIT_DTYPE))
            self.units.release()
        self.sealed = self.count
        self._sealed_total = (
            np.frombuffer(contents.total, np.float64).copy() if contents.total else np.zeros(DIMENSIONS)
        )
        self._fresh_total = np.zeros(DIMENSIONS)
        self._names = {text: number for number, text in contents.names.items()}
        self._terms = {term.stem: term.id for term in contents.terms}
        # By the id of the term, of which there are hundreds of thousands in the words of years.
        self._sources = array("i", bytes(4 * (max((term.id for term in contents.terms), default=0) + 1)))
        for term in contents.terms:
            self._sources[term.id] = term.sources
        self._speakers: dict[int, frozenset[str]] = {}
        self._unsealed = UnsealedUnits()
        self._sealed_postings = SealedPostings(self.store, self._sources)
        self._vectors = UnitVectors(self.store, self.sealed, len(contents.fresh), self._resident)
        self.vocabulary = Vocabulary(self._embedded_words.rows)
        self.vocabulary.load(contents.terms, self.store.term_vectors)
        self._take(contents.fresh)

    # ----------------------------------------------------------------------------------------------------------- append

    def embed_in_advance(self, records: Iterable[SourceText], is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Embed what `append` of these records, or the sealing that it leads to, would embed. May be called in another
        thread than everything else. Raises `IndexingStopped` once it is not wanted any more."""
        texts = [text for record in records if not record.hidden for text in split_into_units(record.text)]
        self._embedded_units.prepare(texts, is_wanted)
        words = [count_words(text) for text in texts]
        stem_of = self._stems(word for counts in words for word in counts)
        stems = {stem.stem: stem.word for counts in words for stem in count_stems(counts, stem_of)}
        if len(self._unsealed) + len(texts) >= SEAL_AFTER_UNITS:
            # Of those that were read at the start, or indexed for a search, not all are embedded.
            stems |= self._unsealed.words.copy()
        self._embedded_words.prepare([word for stem, word in stems.items() if stem not in self._terms], is_wanted)

    def append(
        self,
        records: Iterable[SourceText],
        read_to: Mapping[str, int],
        zone: tzinfo = UTC,
        *,
        is_search: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Index records in order, and save how far the streams of their source were read; dates are in `zone`. Where a
        search waits for it, sealing is left to the background. Raises `StoreError`, and `IndexingStopped` once it is
        not wanted any more; what was not stored is not in memory either."""
        shown = (record for record in records if not record.hidden)
        units = [(record, part, text) for record in shown for part, text in enumerate(split_into_units(record.text))]
        vectors = self._embedded_units.rows([text for *_, text in units], is_wanted)
        names: dict[str, int] = {}
        last: dict[int, tuple[int, int, bool]] = {}
        fresh, asks = [], False
        words = [count_words(text) for *_, text in units]
        stem_of = self._stems(word for counts in words for word in counts)
        for offset, (record, part, text) in enumerate(units):
            if not is_wanted():
                raise IndexingStopped
            number = self.count + offset
            stems = count_stems(words[offset], stem_of)
            meta = self._meta_of(record, stems, names)
            meta["part"] = min(part, 65_535)
            meta["day"] = record.said_at.astimezone(zone).toordinal()
            stream = int(meta["stream"][0])
            second = int(meta["second"][0])
            before, said_at, repeats = last.get(stream) or self._end_of(stream)
            meta["previous"] = before if stream and abs(second - said_at) <= _SILENCE else -1
            follows = int(meta["previous"][0]) >= 0 and repeats
            if part == 0:  # once per record: it reads the whole text, which may have thousands of parts
                asks = record.role == "user" and asks_for_something(record.text)
            repeats = asks if record.role == "user" else follows
            meta["form"] = unit_flags(text) | (REPEATS if repeats else 0)
            meta["first_person"] = count_first_person(text)
            last[stream] = number, second, repeats
            fresh.append(UnsealedUnit(number, meta.tobytes(), vectors[offset].tobytes(), stems))
        self.store.add(fresh, {number: text for text, number in names.items()}, read_to)
        self._names.update(names)
        self.read_to.update(read_to)
        self._take(fresh)
        self._embedded_units.clear()
        if not is_search:
            self.vocabulary.take_in()
        if is_wanted() and self.store.can_seal and len(self._unsealed) >= SEAL_AFTER_UNITS * (2 if is_search else 1):
            self.seal()

    def _end_of(self, stream: int) -> tuple[int, int, bool]:
        """Return the last unit of a stream, its time, and whether it asks or answers; -1 for none."""
        number = self.units.last.get(stream, -1)
        if number < 0:
            return number, 0, False
        return number, int(self.meta[number]["second"]), bool(self.meta[number]["form"] & REPEATS)

    def _meta_of(self, record: SourceText, stems: Sequence[UnitStem], names: dict[str, int]) -> UnitRows:
        meta = np.zeros(1, UNIT_DTYPE)
        meta["source"], meta["second"] = record.id, epoch_second(record.said_at)
        meta["stream"] = self._number(f"{record.scope}\n{record.session}", names) if record.session else 0
        meta["scope"] = self._number(record.scope, names)
        meta["speaker"] = self._number(record.speaker, names) if record.speaker else 0
        meta["role"] = self._number(f"role {record.role}", names)
        meta["words"] = max(1, min(255, sum(stem.times for stem in stems)))
        return meta

    def _number(self, name: str, new: dict[str, int]) -> int:
        """Return the number of a name; 0 is for no name."""
        number = self._names.get(name) or new.get(name)
        if number is None:
            number = new[name] = len(self._names) + len(new) + 1
        return number

    def _take(self, units: Sequence[UnsealedUnit]) -> None:
        """Load stored units into memory, the next ones in order."""
        if not units:
            return
        rows = np.frombuffer(b"".join([unit.meta for unit in units]), UNIT_DTYPE)
        vectors = np.frombuffer(b"".join([unit.vector for unit in units]), np.int8).reshape(-1, DIMENSIONS)
        self._vectors.put(self.count, vectors)
        self._add_rows(rows)
        self._unsealed.add(units)
        self._fresh_total += vectors.sum(axis=0, dtype=np.float64) / VECTOR_SCALE
        self.vocabulary.add_words({stem.stem: stem.word for unit in units for stem in unit.stems})

    def _add_rows(self, rows: UnitRows) -> None:
        self.units.add(rows)
        self._source_count += int(are_counted(rows)[rows["part"] == 0].sum())

    def seal(self) -> None:
        """Seal the unsealed units into a page. Raises `StoreError`; then they stay unsealed."""
        if not len(self._unsealed):
            return
        new = [stem for stem in self._unsealed.stems if stem not in self._terms]
        embedded = self._embedded_words.rows([self._unsealed.words[stem] for stem in new])
        ids = {stem: len(self._sources) + offset for offset, stem in enumerate(new)}
        likes = {ids[stem]: embedded[offset].tobytes() for offset, stem in enumerate(new)}
        terms, postings = [], {}
        for stem, body, more in self._unsealed.by_stem(self.meta):
            term = self._terms.get(stem) or ids[stem]
            # The store keeps its vector of a known term.
            before = 0 if stem in ids else self._sources[term]
            terms.append(IndexTerm(term, stem, max(1, before + more), likes.get(term, b"")))
            postings[term] = body
        first = self.sealed
        meta = self.meta[first:].tobytes()
        page = IndexPage(
            first, self.count - first, meta, self._vectors.resident_rows(first, self.count).tobytes(), terms, postings
        )
        total = self._sealed_total + self._fresh_total
        self.store.seal(page, total.tobytes())
        self._sealed_total, self._fresh_total = total, np.zeros(DIMENSIONS)
        self._sources.extend([0] * len(new))
        for sealed_term in terms:
            self._terms[sealed_term.stem], self._sources[sealed_term.id] = sealed_term.id, sealed_term.sources
        self._sealed_postings.forget(sealed_term.id for sealed_term in terms)
        self._embedded_words.clear()
        self.sealed = self.count
        self._unsealed = UnsealedUnits()
        self._vectors.let_go(self.sealed)
        self.release()

    # ------------------------------------------------------------------------------------------------------------- gone

    def remove_sources(self, sources: Sequence[int], *, text_of: Callable[[int], str] | None = None) -> None:
        """Remove sources from search. With `text_of` (the text of a source as indexed), none of their words is kept,
        for erasures. Raises `StoreError`."""
        wanted = np.array(sources, np.int64)
        numbers = np.flatnonzero(self.units.mask_where(lambda rows: np.isin(rows["source"], wanted)))
        if not len(numbers):
            return
        self.units.remove(numbers)
        terms = None if text_of is None else self._without(numbers, text_of)
        changed = {int(number): self.meta[number].tobytes() for number in numbers}
        self.store.mark_removed(changed, self._sealed_total.tobytes(), terms=terms)
        if text_of is not None:
            self._vectors.erase(numbers, self.count)
            self._load()

    def clear(self) -> None:
        """Empty the index; the whole source has to be read again. Raises `StoreError`."""
        self.store.clear()
        self._load()

    def _without(self, numbers: Ints, text_of: Callable[[int], str]) -> list[IndexTerm]:
        """Return the terms of these removed units, with how many sources still have them."""
        lost: set[str] = set()
        sealed = [int(number) for number in numbers if number < self.sealed]
        for source in {int(self.meta[number]["source"]) for number in sealed}:
            words = count_words(text_of(source))
            lost |= {stem.stem for stem in count_stems(words, self._stems(words))}
        for number in sealed:
            self._sealed_total -= self._vectors.byte_vector(number).astype(np.float64) / VECTOR_SCALE
        return [IndexTerm(self._terms[stem], stem, self._sources_left(stem), b"") for stem in lost & self._terms.keys()]

    def _sources_left(self, stem: str) -> int:
        """Return how many remaining sources have a stem; at 0, nothing of the stem may be kept."""
        units = self._sealed_postings.occurrences([self._terms[stem]])[self._terms[stem]].units
        units = units[self.units.kinds[units] > 0]
        return max(1, count_sources(self.units.rows_of(units))) if len(units) else 0

    # ---------------------------------------------------------------------------------------------------------- reading

    @property
    def count(self) -> int:
        """Return the number of units."""
        return self.units.count

    def speaker_stems(self) -> dict[int, frozenset[str]]:
        """Return the stems of each speaker's name, by speaker number."""
        new = self.units.speakers - {0, *self._speakers}
        for name, number in self._names.items() if new else ():
            if number in new:
                words = [fold_text(word) for word in WORD.findall(split_spaceless_runs(name))]
                self._speakers[number] = frozenset(" ".join(self._stems(words).values()).split())
        return self._speakers

    def prepare(self) -> None:
        """Make what the next question would have to wait for."""
        self._vectors.make_sketches(self.count, lambda: self.mean)
        self.vocabulary.prepare()
        self.release()

    def release(self) -> None:
        """Give back the memory of what is in files: the next question reads again what it uses."""
        self.units.release()
        self._vectors.release()

    @property
    def resident(self) -> int:
        """Return the number of units whose vectors fit in memory."""
        return self._vectors.room

    def distinct(self, units: Ints) -> Ints:
        """Return each of these units once, in order, without negative ones."""
        has = np.zeros(self.count + 1, bool)  # the last entry is for negative numbers
        has[units] = True
        return np.flatnonzero(has[:-1])

    @property
    def meta(self) -> UnitRows:
        """Return the rows of all units; a view, not a copy."""
        return self.units.meta

    def name_number(self, name: str) -> int | None:
        """Return the number of a speaker's name, None if nobody of that name spoke."""
        return self._names.get(name)

    def source_count_of(self, stem: str) -> int:
        """Return how many sources have a stem: a long text counts once, so that it does not make its words common;
        questions and their answers count as one if nothing else has the stem, so that asking about something often does
        not make it harder to find."""
        sealed = self._sources[self._terms.get(stem, 0)]  # no term has the id 0
        if stem not in self._unsealed.stems:
            return sealed
        return max(sealed + self._unsealed.source_count(stem, self.meta), 1)

    @property
    def source_count(self) -> int:
        """Return the number of sources, without questions and their answers."""
        return self._source_count

    def stems_starting_with(self, letter: str) -> list[str]:
        """Return the stems that begin with a letter."""
        return [stem for stem in self._terms.keys() | self._unsealed.stems if stem.startswith(letter)]

    def occurrences_of(self, stems: Iterable[str]) -> list[Occurrences]:
        """Return the occurrences of each stem, in order of units."""
        terms = [(stem, self._terms.get(stem)) for stem in stems]
        sealed = self._sealed_postings.occurrences([term for _, term in terms if term is not None])
        found = []
        for stem, term in terms:
            old = _EMPTY if term is None else sealed[term]
            fresh = self._unsealed.occurrences(stem)
            if fresh is not None:
                units = np.concatenate([old.units, fresh.units])
                old = Occurrences(units, np.concatenate([old.counts, fresh.counts]))
            found.append(old)
        return found

    @property
    def mean(self) -> Floats:
        """Return the mean of all vectors, which carries no information; only a part of it if one text fills the
        collection."""
        mean = (self._sealed_total + self._fresh_total) / (self.count + _PRIOR)
        mean *= min(1.0, _LONGEST_MEAN / max(float(np.linalg.norm(mean)), 1e-6))
        return mean.astype(np.float32)

    def vectors(self, units: Ints) -> ByteVectors:
        """Return the vectors of units (numbers in order)."""
        return self._vectors.unit_vectors(units)

    def nearest(self, vector: Floats, allowed: Bools, limit: int) -> Ints:
        """Return some permitted units in memory whose vectors are most similar to this one, without the mean."""
        return self._vectors.nearest(vector, allowed, limit, lambda: self.mean)
