"""Does a provider's error say that the request is too large? Pure.

Providers have no common code for it, so this knows their codes, types, stop reasons and wordings. Two look-alikes are
kept out: a rate limit counted in tokens (waiting helps, compacting does not), and a cap on the *answer* that is set too
high (a smaller prompt does not help). An error that adds both up, prompt and answer, counts when the prompt is what
fills the window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from assistant.core.text import lazy_regex

_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
    }
)
_BYTE_CODES = frozenset({"request_too_large", "request_body_too_large_after_decoding"})

_TOO_LONG = lazy_regex(
    r"""prompt\ is\ too\ long                                         # Anthropic, also on Bedrock and Vertex
    | exceeds?\ (the\ )?context\ (limit|window|length)               # Anthropic's sum, OpenAI, Ollama
    | exceeds?\ the\ available\ context\ size                        # llama.cpp
    | exceeds?\ (the\ )?(model's\ )?max(imum)?\ context\ length      # Ollama, LiteLLM
    | exceeded\ max\ context\ length                                 # Ollama
    | maximum\ (context|prompt)\ length\ is                          # OpenAI, vLLM, OpenRouter, xAI
    | too\ large\ for\ model\ with\ \d+\ maximum\ context            # Mistral
    | input\ token\ count.{0,40}exceeds\ the\ maximum\ number        # Gemini
    | input\ is\ too\ long\ for\ requested\ model                    # Bedrock
    | too\ long\ to\ fit\ into\ the\ model                           # vLLM
    | longer\ than\ the\ maximum\ model\ length                      # vLLM
    | loaded\ with\ (a\ )?context\ length\ of\ only                  # LM Studio
    | range\ of\ input\ length\ should\ be                           # DashScope
    | exceeded\ model\ token\ limit                                  # Moonshot
    | max\ size:\ \d+\ tokens                                      # GitHub Models
    | please\ reduce\ the\ length\ of\ the\ (messages|prompt)        # Groq, OpenAI
    """,
    re.IGNORECASE | re.VERBOSE,
)
_RATE = lazy_regex(r"rate.?limit|per (minute|min|day)\b|\b[tr]p[md]\b|quota|too many (requests|tokens)", re.IGNORECASE)
_OUTPUT_CAP = lazy_regex(
    r"max_(completion_|output_)?tokens\W.{0,40}(too large|maximum allowed|supports at most)"
    r"|maximum allowed number of output tokens|supports at most \d+ (completion|output) tokens",
    re.IGNORECASE | re.DOTALL,
)
_PROMPT_OF_SUM = lazy_regex(r"(\d+) input tokens|\((\d+) in (?:the messages|your prompt)", re.IGNORECASE)
_WINDOW = lazy_regex(r"maximum context length is (\d+)", re.IGNORECASE)
_TOO_MANY_IMAGES = lazy_regex(
    r"too (many|much) (media|images)|at most \d+ images?\b|image.{0,40}exceeds", re.IGNORECASE
)
_TOO_MANY_BYTES = lazy_regex(
    r"request exceeds the maximum (size|allowed number of bytes)|request entity too large|payload too large"
    r"|request body (is )?too large",
    re.IGNORECASE,
)


def is_context_length_error(error: object) -> bool:
    """Whether `error` says that the prompt does not fit the model's window.

    `error`: an exception of an SDK, a decoded error body, a stop reason or a plain text, of Anthropic, OpenAI, Gemini,
    Mistral, Ollama, llama.cpp, vLLM, Bedrock and others that speak like them."""
    texts = list(_texts(error))
    if _status(error) == 429:
        return False
    if any(text in _CODES for text in texts):
        return True
    said = " ".join(texts)
    if _RATE.search(said):
        return False
    if _OUTPUT_CAP.search(said):
        return _prompt_fills_window(said)
    return _TOO_LONG.search(said) is not None


def is_too_large(error: object) -> bool:
    """Whether the request is over any of the three budgets: tokens, bytes or images (F17)."""
    if is_context_length_error(error) or _status(error) == 413:
        return True
    if _status(error) == 429:
        return False
    texts = list(_texts(error))
    said = " ".join(texts)
    coded = any(text in _BYTE_CODES for text in texts)
    return coded or bool(_TOO_MANY_IMAGES.search(said) or _TOO_MANY_BYTES.search(said))


def _prompt_fills_window(said: str) -> bool:
    """Of an error that adds prompt and answer: the prompt alone takes more than half of the window."""
    prompt, window = _PROMPT_OF_SUM.search(said), _WINDOW.search(said)
    return bool(prompt and window and int(prompt[1] or prompt[2]) * 2 > int(window[1]))


def _status(error: object) -> int | None:
    status = error.get("status_code") if isinstance(error, Mapping) else getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _texts(error: object) -> Iterator[str]:
    """Every text in an error: its words, and the values of its body at any depth."""
    if isinstance(error, BaseException):
        yield str(error)
        for name in ("body", "code", "type", "error_code"):
            yield from _texts(getattr(error, name, None))
    else:
        yield from _values(error)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _values(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values(item)
