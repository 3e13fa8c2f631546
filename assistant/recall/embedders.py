"""Which embedder the settings mean, opened. fastembed is optional and imported only where it is chosen."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

from assistant.errors import MemoryUnavailable
from assistant.recall.embedder import Embedder, EmbedderSettings
from assistant.recall.remote_embedders import ollama_embedder, openai_embedder
from assistant.recall.wordllama import WordLlamaEmbedder


def open_embedder(settings: EmbedderSettings, home: Path, *, seconds: float = 30.0) -> Embedder:
    """`seconds` bounds one request to a provider. Raises `MemoryUnavailable`."""
    match settings.kind:
        case "wordllama":
            return WordLlamaEmbedder()
        case "openai":
            return openai_embedder(settings.model, settings.url, settings.key, seconds=seconds)
        case "ollama":
            return ollama_embedder(settings.model, settings.url, seconds=seconds)
        case "fastembed":
            return _fastembed(settings.model, home)
        case other:
            raise MemoryUnavailable(f"No embedder {other!r}. The journal keeps everything; correct `[memory]`.")


def _fastembed(model: str, home: Path) -> Embedder:
    if importlib.util.find_spec("fastembed") is None:
        raise MemoryUnavailable(
            "The embedder fastembed is not installed. The journal keeps everything; install "
            "nocturne-assistant[fastembed], or choose another `[memory] embedder`."
        )
    room = importlib.import_module("assistant.recall.fastembed")
    embedder: Embedder = room.FastEmbedder(model, home / "models")
    return embedder
