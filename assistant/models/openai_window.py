"""How OpenAI-compatible servers tell the window of a model, each in its own way. Pure: decoded JSON in, tokens out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# vLLM and SGLang; OpenRouter and Together; Groq; LM Studio and Mistral; LiteLLM.
_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens")


def told_window(entry: Mapping[str, Any]) -> int | None:
    """From an entry of /v1/models. llama.cpp names only the window the model was trained with there."""
    meta = entry.get("meta")
    told = [entry.get(key) for key in _KEYS]
    if isinstance(meta, dict):
        told += [meta.get("n_ctx"), meta.get("n_ctx_train")]
    return next((window for window in told if _is_window(window)), None)


def props_window(props: object) -> int | None:
    """From llama.cpp's /props: the window a slot of the running server has."""
    match props:
        case {"default_generation_settings": {"n_ctx": int(window)}} if _is_window(window):
            return window
        case _:
            return None


def loaded_window(running: object, name: str) -> int | None:
    """From Ollama's /api/ps: the window a loaded model runs with, which is often far below what the model can."""
    match running:
        case {"models": list(models)}:
            wanted = {name, f"{name}:latest"}
            mine = [model for model in models if isinstance(model, dict) and model.get("name") in wanted]
            return next((model["context_length"] for model in mine if _is_window(model.get("context_length"))), None)
        case _:
            return None


def _is_window(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
