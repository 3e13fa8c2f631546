"""Which embedder the settings mean, opened. fastembed is optional and imported only where it is chosen."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from assistant.core.errors import MemoryUnavailable, install_hint
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.remote_embedders import EmbeddingMeter, NoEmbeddingMeter, ollama_embedder, openai_embedder
from assistant.mem0.vectors import Embedder
from assistant.mem0.wordllama import WordLlamaEmbedder

MeterFor = Callable[[EmbedderSettings], EmbeddingMeter]
"""What counts the requests to the provider of an embedder."""


def no_meter(settings: EmbedderSettings) -> EmbeddingMeter:
    """Nobody counts."""
    return NoEmbeddingMeter()


def open_embedder(
    settings: EmbedderSettings, home: Path, *, seconds: float = 30.0, meter_for: MeterFor = no_meter
) -> Embedder:
    """`seconds` bounds one request to a provider; `meters` counts each. Raises `MemoryUnavailable`."""
    match settings.kind:
        case "wordllama":
            return WordLlamaEmbedder()
        case "openai":
            return openai_embedder(
                settings.model, settings.url, settings.key, seconds=seconds, meter=meter_for(settings)
            )
        case "ollama":
            return ollama_embedder(settings.model, settings.url, seconds=seconds, meter=meter_for(settings))
        case "fastembed":
            return _fastembed(settings.model, home)
        case other:
            raise MemoryUnavailable(f"No embedder {other!r}. The journal keeps everything; correct `[memory]`.")


def _fastembed(model: str, home: Path) -> Embedder:
    if importlib.util.find_spec("fastembed") is None:
        raise MemoryUnavailable(
            f"The embedder fastembed is not installed. The journal keeps everything; {install_hint('fastembed')}. Or "
            "choose another `[memory] embedder`."
        )
    from assistant.mem0.fastembed import FastEmbedder  # an extra

    return FastEmbedder(model, home / "models")
