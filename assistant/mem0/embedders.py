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
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
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
# Rows read at once, 2 MB: limits the memory for many texts, or one of a megabyte.
_TOKENS_AT_ONCE = 2048


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
        self._table = TokenTable(folder / _WEIGHTS)
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # This tokenizer treats a whole text as one word and would cache it: 4 KB per text, for the first 10,000.
        self._tokenizer.model._resize_cache(0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_in_batches(texts, self.dimensions, _TEXTS_AT_ONCE, self._rows)

    def _rows(self, texts: list[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch_fast([clean_text(text) for text in texts], add_special_tokens=False)
        means: list[Vectors] = []
        together: list[Sequence[int]] = []
        tokens = 0
        for encoding in encodings:
            if together and tokens + len(encoding) > _TOKENS_AT_ONCE:
                means.append(self._means(together))
                together, tokens = [], 0
            together.append(encoding.ids)
            tokens += len(encoding)
        return np.concatenate([*means, self._means(together)])

    def _means(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """Return the mean vector of each text's tokens; zeros for a text without any."""
        counts = np.array([len(ids) for ids in texts])
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        if len(texts) == 1:
            for start in range(0, len(texts[0]), _TOKENS_AT_ONCE):
                rows = self._table.rows(texts[0][start : start + _TOKENS_AT_ONCE])
                sums[0] += np.add.reduceat(rows, [0], axis=0)[0]
        elif counts.any():
            rows = self._table.rows([token for ids in texts for token in ids])
            starts = np.cumsum(counts) - counts
            sums[counts > 0] = np.add.reduceat(rows, starts[counts > 0], axis=0)
        means: Vectors = sums / np.maximum(counts, 1)[:, None].astype(np.float32)
        return means


def _package() -> Path:
    spec = importlib.util.find_spec("wordllama")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise MemoryUnavailable(
            "The package wordllama is not installed, so no memory can be embedded. The journal keeps everything; "
            "install it, or choose another `[memory] embedder`."
        )
    return Path(folders[0])


class TokenTable:
    """The vectors of all tokens, in their file, of which single rows are read: mapped into memory, all 16 MB would soon
    be there, because the system maps 64 KB around each row. A safetensors file begins with the length of its JSON
    header: https://github.com/safetensors/safetensors (its own reader would copy everything)."""

    def __init__(self, path: Path) -> None:
        """Raises `MemoryUnavailable`."""
        try:
            self._file = path.open("rb", buffering=0)
            size = int.from_bytes(self._file.read(8), "little")
            if size > _LONGEST_HEADER:
                raise ValueError("not a file of safetensors")
            header = json.loads(self._file.read(size))[_TABLE]
            if header["dtype"] != "F16":
                raise ValueError(f"numbers of type {header['dtype']}")
            self._count, self._columns = header["shape"]
            self._offset = 8 + size + int(header["data_offsets"][0])
            self._row(self._count - 1)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(str(error)) from error

    def rows(self, tokens: Sequence[int]) -> Vectors:
        """Return the vector of each token, at least one; an unknown one has that of the last. Raises
        `MemoryUnavailable`."""
        known, places = np.unique(np.minimum(tokens, self._count - 1), return_inverse=True)
        read = np.frombuffer(b"".join([self._row(token) for token in known.tolist()]), np.float16)
        vectors: Vectors = read.reshape(len(known), self._columns).astype(np.float32)[places]
        return vectors

    def _row(self, token: int) -> bytes:
        size = 2 * self._columns
        try:
            row = os.pread(self._file.fileno(), size, self._offset + token * size)
        except OSError as error:
            raise _unreadable(str(error)) from error
        if len(row) != size:
            raise _unreadable("the file is shorter than it says")
        return row


def _unreadable(why: str) -> MemoryUnavailable:
    return MemoryUnavailable(
        f"WordLlama's weights cannot be read ({why}). The journal keeps everything; install wordllama again."
    )


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
