"""fastembed: embeddings by ONNX models on this machine, downloaded once into the home.

fastembed is optional, so that this module is imported only where it is installed and chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import fastembed
import numpy as np

from assistant.core.errors import MemoryUnavailable
from assistant.mem0.vectors import Vectors, embed_in_batches

_TEXTS_AT_ONCE = 256

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"


class FastEmbedder:
    """`model` "" is a small English one; `folder` is where models are kept. Raises `MemoryUnavailable` for a model
    that is not known, or cannot be downloaded."""

    def __init__(self, model: str, folder: Path) -> None:
        self._model_name = model or DEFAULT_MODEL
        known = {str(one["model"]): int(one["dim"]) for one in fastembed.TextEmbedding.list_supported_models()}
        if self._model_name not in known:
            raise MemoryUnavailable(
                f"fastembed does not know the model {self._model_name}. The journal keeps everything; correct "
                "`[memory] embedder_model`."
            )
        self._dimensions = known[self._model_name]
        try:
            self._model = fastembed.TextEmbedding(self._model_name, cache_dir=str(folder))
        except (OSError, ValueError) as error:
            raise MemoryUnavailable(
                f"fastembed could not load {self._model_name} ({type(error).__name__}). The journal keeps everything; "
                "check the network for the first download."
            ) from error

    @property
    def name(self) -> str:
        return f"fastembed:{self._model_name}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_in_batches(
            texts, self._dimensions, _TEXTS_AT_ONCE, lambda some: np.stack(list(self._model.embed(some)))
        )
