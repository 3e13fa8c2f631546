"""The embedders, and opening the configured one.

The built-in one is WordLlama, a table of token vectors that are averaged: it uses no network and writes nothing. Only
two files of the installed `wordllama` package are read, its weights and its tokenizer. The package itself is never
imported: its newer release is compiled only for a few platforms, and its older one cannot load its own files offline;
both have the same two files. fastembed (ONNX models, downloaded once into the data folder) is optional and only
imported if chosen.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from assistant.core.errors import MemoryUnavailable, install_hint
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.vectors import Embedder, Vectors, embed_in_batches
from assistant.store.rows import clean_text

if TYPE_CHECKING:
    from assistant.mem0.remote_embedders import EmbeddingMeter

MeterFor = Callable[[EmbedderSettings], "EmbeddingMeter | None"]
"""What counts the requests to the provider of an embedder; None: nobody does."""

FASTEMBED_MODEL = "BAAI/bge-small-en-v1.5"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TABLE = "embedding.weight"
_LONGEST_HEADER = 1 << 20
_TEXTS_AT_ONCE = 256
# Rows read at once, 8 MB: limits the memory for a text of a megabyte.
_TOKENS_AT_ONCE = 8192
# Tells the system that mapped pages are not needed now; not available everywhere.
_DROP_PAGES: int | None = getattr(mmap, "MADV_DONTNEED", None)


def no_meter(settings: EmbedderSettings) -> None:
    """Count nothing."""


def open_embedder(
    settings: EmbedderSettings, home: Path, *, seconds: float = 30.0, meter_for: MeterFor = no_meter
) -> Embedder:
    """`seconds` limits one request to a provider; `meter_for` returns what counts requests. Raises
    `MemoryUnavailable`."""
    match settings.kind:
        case "wordllama":
            return WordLlamaEmbedder()
        case "fastembed":
            return FastEmbedder(settings.model, home / "models")
        case "openai" | "ollama":
            # Imports an HTTP client, which search does not need.
            from assistant.mem0.remote_embedders import RemoteEmbedder

            return RemoteEmbedder(settings, seconds=seconds, meter=meter_for(settings))
        case other:
            raise MemoryUnavailable(
                f"There is no embedder {other!r}. The journal keeps everything; correct `[memory]`."
            )


class WordLlamaEmbedder:
    """Raises `MemoryUnavailable` if the package or its files are missing."""

    dimensions = 256
    name = f"wordllama:{dimensions}"

    def __init__(self) -> None:
        folder = _package()
        # Two bytes per number, as in the file; only the needed rows are converted.
        self._mapping, self._table = _table(folder / _WEIGHTS)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # This tokenizer treats a whole text as one word and would cache it: 4 KB per text, for the first 10,000.
        self._tokenizer.model._resize_cache(0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_in_batches(texts, self.dimensions, _TEXTS_AT_ONCE, self._rows)

    def _rows(self, texts: list[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch_fast([clean_text(text) for text in texts], add_special_tokens=False)
        rows = np.stack([self._mean(encoding.ids) for encoding in encodings])
        # The system maps 64 KB around each row, and so soon all 16 MB. They stay in the file cache.
        if _DROP_PAGES is not None:
            self._mapping.madvise(_DROP_PAGES)
        return rows

    def _mean(self, ids: Sequence[int]) -> NDArray[np.float32]:
        tokens = np.minimum(np.asarray(ids, dtype=np.int64), len(self._table) - 1)
        total = np.zeros(self.dimensions, dtype=np.float32)
        for start in range(0, len(tokens), _TOKENS_AT_ONCE):
            total += self._table[tokens[start : start + _TOKENS_AT_ONCE]].sum(axis=0, dtype=np.float32)
        mean: NDArray[np.float32] = total / np.float32(max(1, len(tokens)))
        return mean


def _package() -> Path:
    spec = importlib.util.find_spec("wordllama")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise MemoryUnavailable(
            "The package wordllama is not installed, so no memory can be embedded. The journal keeps everything; "
            "install it, or choose another `[memory] embedder`."
        )
    return Path(folders[0])


def _table(path: Path) -> tuple[mmap.mmap, NDArray[np.float16]]:
    """Map the weights read-only, shared by all processes. A safetensors file begins with the length of its JSON header:
    https://github.com/safetensors/safetensors (its own reader would copy everything)."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > _LONGEST_HEADER:
                raise ValueError("not a file of safetensors")
            header = json.loads(file.read(size))[_TABLE]
            if header["dtype"] != "F16":
                raise ValueError(f"numbers of type {header['dtype']}")
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        rows, columns = header["shape"]
        offset = 8 + size + int(header["data_offsets"][0])
        return mapping, np.frombuffer(mapping, np.float16, rows * columns, offset).reshape(rows, columns)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MemoryUnavailable(
            f"WordLlama's weights cannot be read ({error}). The journal keeps everything; install wordllama again."
        ) from error


class FastEmbedder:
    """`model` "" is a small English one; `folder` stores models. Raises `MemoryUnavailable` for a model that is unknown
    or cannot be downloaded."""

    def __init__(self, model: str, folder: Path) -> None:
        if importlib.util.find_spec("fastembed") is None:
            raise MemoryUnavailable(
                "The embedder fastembed is not installed. The journal keeps everything; "
                f"{install_hint('fastembed')}. Or choose another `[memory] embedder`."
            )
        import fastembed  # an optional dependency

        model = model or FASTEMBED_MODEL
        dimensions = {str(info["model"]): int(info["dim"]) for info in fastembed.TextEmbedding.list_supported_models()}
        if model not in dimensions:
            raise MemoryUnavailable(
                f"fastembed does not know the model {model}. The journal keeps everything; correct "
                "`[memory] embedder_model`."
            )
        self.name = f"fastembed:{model}"
        self.dimensions = dimensions[model]
        try:
            self._model = fastembed.TextEmbedding(model, cache_dir=str(folder))
        except (OSError, ValueError) as error:
            raise MemoryUnavailable(
                f"fastembed could not load {model} ({type(error).__name__}). The journal keeps everything; "
                "check the network for the first download."
            ) from error

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_in_batches(
            texts, self.dimensions, _TEXTS_AT_ONCE, lambda batch: np.stack(list(self._model.embed(batch)))
        )
