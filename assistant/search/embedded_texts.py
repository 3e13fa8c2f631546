"""Vectors of texts that were embedded before they are needed: embedding takes most of the time of indexing, and needs
nothing of the index, for which a search has to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from assistant.search.dtypes import DIMENSIONS, ByteVectors, EmbedTexts, quantise
from assistant.search.index_values import IndexingStopped

# In about 0.1 s, after which indexing can be stopped.
_EMBEDDED_AT_ONCE = 256


class EmbeddedTexts:
    """Quantised vectors by text, until they are cleared. `prepare` may be called in any thread at any time, the rest in
    one at a time."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed
        self._vectors: dict[str, bytes] = {}

    def prepare(self, texts: Iterable[str], is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Embed texts, each once. Raises `IndexingStopped` once it is not wanted any more."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        for first in range(0, len(missing), _EMBEDDED_AT_ONCE):
            if not is_wanted():
                raise IndexingStopped
            some = missing[first : first + _EMBEDDED_AT_ONCE]
            vectors = quantise(self._embed(some))
            self._vectors.update((text, vectors[row].tobytes()) for row, text in enumerate(some))

    def rows(self, texts: Sequence[str], is_wanted: Callable[[], bool] = lambda: True) -> ByteVectors:
        """Return the vectors of texts, a row for each. Raises `IndexingStopped` once it is not wanted any more."""
        self.prepare(texts, is_wanted)
        return np.frombuffer(b"".join([self._vectors[text] for text in texts]), np.int8).reshape(-1, DIMENSIONS)

    def clear(self) -> None:
        self._vectors.clear()
