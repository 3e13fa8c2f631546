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
import re
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assistant.core.errors import MemoryUnavailable, install_hint
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.subwords import read_tokenizer
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
# Words whose tokens are kept, 200 bytes each, and the longest of these, in characters.
_WORDS_KEPT, _LONGEST_KEPT = 8_192, 24
# Vectors of tokens that are kept, 600 bytes each.
_ROWS_KEPT = 2_048
# Each word with the blanks before it.
_WORD = re.compile(r"(?<! ) ++[^ ]++(?: ++\Z)?")


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
        try:
            self._tokenizer = read_tokenizer(folder / _TOKENIZER)
        except (OSError, ValueError, KeyError) as error:
            raise _unreadable(str(error)) from error
        self._tokens_of: dict[str, bytes] = {}  # the latest words

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_in_batches(texts, self.dimensions, _TEXTS_AT_ONCE, self._rows)

    def is_word(self, word: str) -> bool:
        """Return whether a word is common enough to be one token; a misspelt one is several."""
        (tokens,) = self._tokens([word])
        return len(tokens) == 1

    def _rows(self, texts: list[str]) -> Vectors:
        tokens = self._tokens([clean_text(text) for text in texts])
        rows, places = self._table.rows(np.concatenate(tokens))
        means, end = np.zeros((len(texts), self.dimensions), np.float32), 0
        for row, of_text in enumerate(tokens):
            start, end = end, end + len(of_text)
            means[row] = self._mean(rows, places[start:end])
        return means

    def _tokens(self, texts: Sequence[str]) -> list[NDArray[np.uint16]]:
        """Return the tokens of each text, word by word: no token reaches over a blank, so that these are the tokens of
        the whole, and a word that was seen takes a hundredth of the time."""
        words = [_WORD.findall(f" {text}") for text in texts]  # a text begins as a word does
        if len(self._tokens_of) > _WORDS_KEPT:
            self._tokens_of = {}
        kept = self._tokens_of  # other threads add to it
        tokens = {word: kept.get(word) for of_text in words for word in of_text}
        missing = [word for word, known in tokens.items() if known is None]
        made = {word: array("H", self._tokenizer.encode(word)).tobytes() for word in missing}
        kept.update((word, ids) for word, ids in made.items() if len(word) <= _LONGEST_KEPT)
        tokens |= made
        return [np.frombuffer(b"".join([tokens[word] or b"" for word in of_text]), np.uint16) for of_text in words]

    def _mean(self, rows: NDArray[np.float16], places: NDArray[np.intp]) -> NDArray[np.float32]:
        total = np.zeros(self.dimensions, dtype=np.float32)
        for start in range(0, len(places), _TOKENS_AT_ONCE):
            # Converting first is faster than a sum that converts.
            total += rows[places[start : start + _TOKENS_AT_ONCE]].astype(np.float32).sum(axis=0)
        mean: NDArray[np.float32] = total / np.float32(max(1, len(places)))
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


class TokenTable:
    """The vectors of tokens, two bytes per number, read from the file when they are needed: mapped, each would bring 64
    KB of others into memory, soon all 16 MB. A safetensors file begins with the length of its JSON header:
    https://github.com/safetensors/safetensors (its own reader would copy everything)."""

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
            self._kept: dict[int, bytes] = {}  # the latest vectors
            self.rows(np.array([0, self._count - 1]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(str(error)) from error

    def rows(self, tokens: NDArray[np.integer]) -> tuple[NDArray[np.float16], NDArray[np.intp]]:
        """Return the vectors of the distinct tokens, and the place of each of these tokens among them. Raises
        `MemoryUnavailable`."""
        ids = np.array(sorted(set(tokens.tolist())))
        if len(self._kept) > _ROWS_KEPT:
            self._kept = {}
        kept = self._kept  # other threads add to it
        read = [kept.get(token) or kept.setdefault(token, self._read(token)) for token in ids.tolist()]
        rows = np.frombuffer(b"".join(read), np.float16).reshape(len(ids), self._columns)
        return rows, np.searchsorted(ids, tokens)

    def _read(self, token: int) -> bytes:
        size = 2 * self._columns
        try:
            row = os.pread(self._file.fileno(), size, self._offset + min(token, self._count - 1) * size)
        except OSError as error:
            raise _unreadable(str(error)) from error
        if len(row) != size:
            raise _unreadable("the file is shorter than it says")
        return row


def _unreadable(why: str) -> MemoryUnavailable:
    return MemoryUnavailable(
        f"WordLlama's files cannot be read ({why}). The journal keeps everything; install wordllama again."
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
