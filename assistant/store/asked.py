"""A question as the searches of the log and of memory put it: where its words stand, and what chance would bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assistant.search.index_values import FinderPort
from assistant.store.coincidence import Coincidence
from assistant.store.matching import Matcher
from assistant.store.stems import Stems
from assistant.store.terms import QueryWord


@dataclass(frozen=True, slots=True)
class Asked:
    matcher: Matcher
    chance: Coincidence


def asked_of(finder: FinderPort, words: Sequence[QueryWord], stems: Stems) -> Asked:
    """A question of these words, asked of what `finder` finds in. Raises `StoreError`."""
    counts, sources = finder.frequencies([word.text for word in words])
    idf = [math.log(1 + (sources - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts]
    return Asked(Matcher(words, stems), Coincidence(words, idf, sources))
