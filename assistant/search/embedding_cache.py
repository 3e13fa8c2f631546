"""Embeds the texts of a question, each once: a turn searches memories and messages for the same question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from assistant.search.dtypes import EmbedTexts, Floats

_KEPT = 128


class EmbeddingCache:
    """Keeps the vectors of the latest 128 texts, 128 KB. Thread-safe."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed
        self._vectors: OrderedDict[str, Floats] = OrderedDict()
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row per text, like the embedder, which is called at most once. At least one text."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if missing:
                self._vectors.update(zip(missing, self._embed(missing), strict=True))
            rows = np.stack([self._vectors[text] for text in texts])
            for text in texts:
                self._vectors.move_to_end(text)
            while len(self._vectors) > _KEPT:
                self._vectors.popitem(last=False)
            return rows
