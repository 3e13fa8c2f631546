"""What turns words into vectors, as the rest of the house sees it.

What always holds: rows have length 1, so that a dot product is a cosine; a text without a letter or digit has the zero
row, which is close to nothing. Vectors of embedders with different names are never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row a text."""


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Its identity, as in "wordllama:256": vectors of the same name may be compared."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """An array (texts, dimensions) of rows of length 1. Raises `MemoryUnavailable` where a provider is asked that
        does not answer."""
        ...


def has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def embedded(texts: Sequence[str], dimensions: int, at_once: int, made: Callable[[list[str]], Vectors]) -> Vectors:
    """Rows of length 1, `at_once` texts at a time as `made` has them; zero rows for texts without words."""
    rows = np.zeros((len(texts), dimensions), dtype=np.float32)
    worded = [place for place, text in enumerate(texts) if has_words(text)]
    for start in range(0, len(worded), at_once):
        places = worded[start : start + at_once]
        rows[places] = made([texts[place] for place in places])
    return normalised(rows)


def encodable(text: str) -> str:
    """`text` with halves of surrogate pairs joined, or replaced: they have no UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def normalised(rows: Vectors) -> Vectors:
    """The rows at length 1; a zero row stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled
