"""A model's limits, as its provider reports them: asked once and kept in the data folder.

OpenAI-compatible servers report the window each in its own way; the functions that read it are pure (decoded JSON in,
tokens out).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from assistant.core.calendar import is_still_ahead
from assistant.core.errors import StoreError
from assistant.core.model_api import ModelLimits
from assistant.core.ports import ModelFactsPort
from assistant.models.encoding import read_token_count

# vLLM and SGLang; OpenRouter and Together; Groq; LM Studio and Mistral; LiteLLM.
_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens")


def window_from_model_entry(entry: Mapping[str, Any]) -> int | None:
    """From an entry of /v1/models. llama.cpp names only the window the model was trained with there."""
    meta = entry.get("meta")
    values = [entry.get(key) for key in _KEYS]
    if isinstance(meta, dict):
        values += [meta.get("n_ctx"), meta.get("n_ctx_train")]
    return next((count for value in values if (count := read_token_count(value))), None)


def window_from_props(props: object) -> int | None:
    """From llama.cpp's /props: the window a slot of the running server has."""
    match props:
        case {"default_generation_settings": {"n_ctx": window}}:
            return read_token_count(window) or None
        case _:
            return None


def window_from_running_models(running: object, name: str) -> int | None:
    """From Ollama's /api/ps: the window a loaded model runs with, which is often far below what the model can."""
    match running:
        case {"models": list(models)}:
            names = {name, f"{name}:latest"}
            matches = [model for model in models if isinstance(model, dict) and model.get("name") in names]
            windows = (read_token_count(model.get("context_length")) for model in matches)
            return next((window for window in windows if window), None)
        case _:
            return None


LIMITS_TIMEOUT_SECONDS = 4.0
ASK_LIMITS_AGAIN_AFTER = timedelta(minutes=5)


class LimitsCache:
    """The limits of one model. A store that fails costs nothing but asking again after the next start."""

    def __init__(self, facts: ModelFactsPort | None, clock: Callable[[], datetime]) -> None:
        self._facts = facts
        self._clock = clock
        self._limits: ModelLimits | None = None
        self._ask_after: datetime | None = None

    def get_limits(self, key: str) -> ModelLimits | None:
        """What is known, from this process or an earlier one."""
        if self._limits is None and self._facts is not None:
            try:
                self._limits = self._facts.limits(key)
            except StoreError:
                return None
        return self._limits

    def save_limits(self, key: str, limits: ModelLimits) -> None:
        """Keep the limits, also for the next start if they are new. A store that fails is passed over."""
        if limits == self.get_limits(key):
            return
        self._limits = limits
        if self._facts is not None:
            try:
                self._facts.set_limits(key, limits, self._clock())
            except StoreError:
                pass

    def may_ask(self) -> bool:
        """Whether the provider may be asked now: a failure is not repeated with every call."""
        after = self._ask_after
        return after is None or not is_still_ahead(after, self._clock(), ASK_LIMITS_AGAIN_AFTER)

    def record_failure(self) -> None:
        """Wait `ASK_LIMITS_AGAIN_AFTER` before the provider is asked again."""
        self._ask_after = self._clock() + ASK_LIMITS_AGAIN_AFTER
