"""Whether an excerpt has the words of a question by more than coincidence. Pure.

A search gives the best there is, and for a question about nothing that was ever said that is still something. The
scores of a search say which of its hits are better, not whether any is good. This does: were words strewn over
everything that was said independently of each other, so many passages as long as an excerpt would have these words
together. Few: they stand here together for a reason.

Words of a language are not independent: the common ones come in company ("talk to you tomorrow"). So only words that
at most one passage in twenty has are counted; with commoner ones the measure means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

from assistant.core.records import MatchQuality
from assistant.store.terms import QueryWord

_TELLING = math.log(20)


@dataclass(frozen=True, slots=True)
class Coincidence:
    """What is to be expected of chance for one question. `idf` is that of its words, 0 for one that nobody said, taken
    from so many `passages`."""

    words: Sequence[QueryWord]
    idf: Sequence[float]
    passages: int

    def fit(self, found: Set[int]) -> MatchQuality:
        """How an excerpt fits that has the words `found` (by index)."""
        unheard = math.log(2 * (self.passages + 1))
        whole = sum(worth or unheard for worth in self.idf)
        telling = [i for i in self._apart(sorted(found)) if self.idf[i] >= _TELLING]
        chance = (self.passages + 1) * math.exp(-sum(self.idf[i] for i in telling))
        return MatchQuality(len(telling), chance, sum(self.idf[i] for i in found) / whole if whole else 0.0)

    def _apart(self, found: Sequence[int]) -> list[int]:
        """The words that stand for themselves: of the overlapping pairs that a spaceless run is taken into, every
        other one, since the next one says half of the same."""
        kept: list[int] = []
        for i in found:
            word, before = self.words[i], self.words[kept[-1]] if kept and kept[-1] == i - 1 else None
            if not (before and word.spaceless and before.spaceless and before.text[-1] == word.text[0]):
                kept.append(i)
        return kept
