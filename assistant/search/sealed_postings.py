"""The occurrences of words in the sealed pages of a collection, read from the store; the latest stay in memory."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from assistant.search.dtypes import POSTING_DTYPE, Occurrences, read_postings
from assistant.search.index_values import IndexStore

# Of 5 bytes each.
_CACHED_POSTINGS = 2_000_000
# Terms of so many sources are read at once, which takes three times the memory of what is kept.
_SOURCES_READ_AT_ONCE = 1 << 17


class SealedPostings:
    def __init__(self, store: IndexStore, sources: array[int]) -> None:
        """`sources` is how many sources each term has, by its id; it may grow."""
        self._store = store
        self._sources = sources
        self._cache: OrderedDict[int, Occurrences] = OrderedDict()
        self._cached = 0

    def occurrences(self, terms: Sequence[int]) -> dict[int, Occurrences]:
        """Return the occurrences of terms; those that are not cached are read at once."""
        found = {}
        for term in terms:
            if (cached := self._cache.get(term)) is not None:
                self._cache.move_to_end(term)
                found[term] = cached
        for some in self._read_together([term for term in dict.fromkeys(terms) if term not in found]):
            for term, body in self._store.postings(some).items():
                found[term] = self._cache[term] = read_postings(np.frombuffer(body, POSTING_DTYPE))
                self._cached += len(found[term].units)
        while self._cached > _CACHED_POSTINGS and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._cached -= len(dropped.units)
        return found

    def forget(self, terms: Iterable[int]) -> None:
        """Read these terms again: another page has them."""
        for term in terms:
            cached = self._cache.pop(term, None)
            if cached is not None:
                self._cached -= len(cached.units)

    def _read_together(self, terms: Sequence[int]) -> Iterator[list[int]]:
        """Yield the terms in groups, of so many sources at the most unless one term alone has more."""
        group: list[int] = []
        sources = 0
        for term in terms:
            if group and sources + self._sources[term] > _SOURCES_READ_AT_ONCE:
                yield group
                group, sources = [], 0
            group.append(term)
            sources += self._sources[term]
        if group:
            yield group
