"""The engine of search and the built-in embedder, put together: the heavy part of `assistant.wire.search`.

The index always takes the built-in embedder, whatever semantic memory is embedded by: every message is embedded as it
is said, and none of them leaves the machine for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from assistant.mem0.embedders import WordLlamaEmbedder
from assistant.search.dtypes import Floats
from assistant.search.engine import SearchEngine
from assistant.search.fulltext import FindStems, with_irregular_forms
from assistant.search.index_values import IndexStore
from assistant.search.query import SearchLimits

# Another form of units or stems is another number: all is indexed anew then.
_INDEX_VERSION = 2


def made_by() -> str:
    """What an index is made by: one that says something else is made anew."""
    return f"{_INDEX_VERSION} {_embedder().name}"


def engine(shelf: IndexStore, stems: FindStems, bounds: SearchLimits) -> SearchEngine:
    return SearchEngine(shelf, with_irregular_forms(stems), _embed, bounds)


def _embed(texts: Sequence[str]) -> Floats:
    return _embedder().embed(texts)


@cache
def _embedder() -> WordLlamaEmbedder:
    """Loaded when the first text is embedded, and shared by whoever embeds in this process."""
    return WordLlamaEmbedder()
