"""Chat Completions through the official OpenAI SDK: OpenAI itself, and every server that speaks like it (Ollama,
llama.cpp, vLLM, LM Studio, proxies).

What always holds: every call is streamed; the SDK's own retries are off, so that each attempt is metered (I9);
whatever goes wrong is raised as a `ModelError`. A stall is a silence of the connection.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any

import httpx2

from assistant.core.imports import deferred_reexports, hidden_modules
from assistant.core.model_api import CallPurpose, ModelEvent, ModelLimits, ModelRequest
from assistant.core.ports import ModelFactsPort
from assistant.core.text import beside_loop_if_many, host_of_address
from assistant.models.connection import RequestBody, limit_size, proxy_remark
from assistant.models.encoding import CHARS_PER_TOKEN, MalformedProviderData, encode_body, require_object
from assistant.models.errors import (
    PartialAnswer,
    ProviderFault,
    ProviderLabel,
    connection_lost_error,
    connection_lost_reason,
    parse_retry_after,
)
from assistant.models.limits import (
    LIMITS_TIMEOUT_SECONDS,
    LimitsCache,
    window_from_model_entry,
    window_from_props,
    window_from_running_models,
)
from assistant.models.openai_format import OpenAIAnswer, OutputLimit, render_openai_request
from assistant.models.prices import OPENAI_URL, is_hosted_by_openai

with deferred_reexports("openai"):
    import openai
    from openai import AsyncOpenAI, AsyncStream

CONNECT_SECONDS = 10.0
DEFAULT_WINDOW = 32_768
MAX_BYTES = 20_000_000
MAX_IMAGES = 50
MAX_OUTPUT = 128_000

_BROKEN = (httpx2.HTTPError, openai.APIConnectionError, ValueError, RecursionError)
_TIMEOUTS = (httpx2.TimeoutException, openai.APITimeoutError)


class OpenAIModel:
    """One model behind an OpenAI-compatible address. `base_url` "" is OpenAI's own; `name` "" is the first model that
    the address lists, known after the first call. `known_window` (tokens) is used where the server does not tell its
    window; without either it is 32,768."""

    provider = "openai"

    def __init__(
        self,
        name: str,
        api_key: str,
        *,
        clock: Callable[[], datetime],
        base_url: str = "",
        stall_seconds: float = 90.0,
        facts: ModelFactsPort | None = None,
        known_window: int | None = None,
    ) -> None:
        self.name = name
        self._base_url = (base_url or OPENAI_URL).rstrip("/")
        self._label = ProviderLabel(self.provider, host_of_address(self._base_url))
        self._clock = clock
        self._limits_cache = LimitsCache(facts, clock)
        self._known_window = known_window
        # OpenAI's own list tells no windows.
        self._has_learned = bool(name) and is_hosted_by_openai(base_url)
        self._stall_seconds = stall_seconds
        self._output_limit: OutputLimit = "max_completion_tokens" if is_hosted_by_openai(base_url) else "max_tokens"
        # Local servers want no key, the SDK insists on one.
        # The HTTP client would load them where something else installed them; neither is used.
        with hidden_modules("trio", "h2"):
            self._client = AsyncOpenAI(
                api_key=api_key or "none",
                base_url=self._base_url,
                max_retries=0,
                timeout=httpx2.Timeout(stall_seconds, connect=min(stall_seconds, CONNECT_SECONDS)),
            )

    async def limits(self) -> ModelLimits:
        """As the port says. Without a configured name, this also finds the server's first model."""
        if not self.name or self._limits_cache.get_limits(self._key) is None:
            await self._learn_limits()
        if self.name and (limits := self._limits_cache.get_limits(self._key)):
            return limits
        return _limits(self._known_window or DEFAULT_WINDOW, "table" if self._known_window else "default")

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """As the port says. A server that lists no models is a `ModelError` of kind "network"."""
        await self._learn_limits()
        max_output = (await self.limits()).max_output
        if not self.name:
            raise connection_lost_error(self._label, "it lists no models (is the server running?)", PartialAnswer())
        request = replace(request, max_output_tokens=min(request.max_output_tokens, max_output))
        body = await beside_loop_if_many(
            request.messages, render_openai_request, request, self.name, output_limit=self._output_limit
        )
        answer = OpenAIAnswer(self.name, cache(partial(_estimate, body)))
        try:
            async with await self._create(body) as chunks:
                limit_size(chunks.response)
                async for chunk in chunks:
                    for progress in answer.progress(answer.feed(require_object(chunk))):
                        yield progress
                    if answer.is_endless:
                        answer.cut_off()
                        break
            if not answer.finished:
                raise MalformedProviderData("the stream ended before the answer did")
        except _BROKEN as error:
            reason = connection_lost_reason(error, _TIMEOUTS, self._stall_seconds)
            reason += proxy_remark(self._base_url) if not answer.begun else ""
            raise connection_lost_error(self._label, reason, answer.partial) from error
        except openai.APIError as error:
            raise self._to_fault(error).to_model_error(self._label, answer.partial) from error
        yield answer.reply()

    async def aclose(self) -> None:
        await self._client.close()

    @property
    def _key(self) -> str:
        """Two servers may give one name to models of different windows."""
        return f"{self.name}@{self._base_url}"

    async def _create(self, body: dict[str, Any]) -> AsyncStream[object]:
        """As `chat.completions.create` asks, but for its look at every message for names to translate, of which the
        body has none: 0.15 ms each, in every request."""
        with RequestBody(encode_body({**body, "stream": True, "stream_options": {"include_usage": True}})) as sent:
            return await self._client.post(
                "/chat/completions",
                content=sent,
                options={"headers": sent.headers},
                cast_to=object,
                stream=True,
                stream_cls=AsyncStream[object],
            )

    # ----------------------------------------------------------------------------------------------------------- limits

    async def _learn_limits(self) -> None:
        """Reads the model's name and window from the server's list of models."""
        if self._has_learned or not self._limits_cache.may_ask():
            return
        try:
            page = require_object(await self._get("/models"))
            listed = [require_object(entry) for entry in page.get("data") or ()]
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError):
            self._limits_cache.record_failure()
            return
        entry = next((entry for entry in listed if not self.name or entry.get("id") == self.name), {})
        self.name = self.name or str(entry.get("id") or "")
        window = await self._window(entry)
        if window:
            self._limits_cache.save_limits(self._key, _limits(window, "provider"))
        # Ollama tells the window of a model only while it is loaded: ask again after the first call.
        self._has_learned = bool(window) or entry.get("owned_by") != "library"

    async def _window(self, entry: Mapping[str, Any]) -> int | None:
        """What the server runs the model with, rather than what the model was made for."""
        root = self._base_url.removesuffix("/v1")
        if entry.get("owned_by") == "llamacpp":
            return window_from_props(await self._get_json(f"{root}/props")) or window_from_model_entry(entry)
        if entry.get("owned_by") == "library":
            return window_from_running_models(await self._get_json(f"{root}/api/ps"), self.name)
        return window_from_model_entry(entry)

    async def _get_json(self, url: str) -> object:
        try:
            return await self._get(url)
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError):
            return None

    async def _get(self, url: str) -> object:
        return await self._client.get(url, cast_to=object, options={"timeout": LIMITS_TIMEOUT_SECONDS})

    # ----------------------------------------------------------------------------------------------------------- errors

    def _to_fault(self, error: openai.APIError) -> ProviderFault:
        """An error reply, or an error object in mid-stream, which has no status but perhaps a number as its code."""
        code = error.code or ""
        types = tuple(name for name in (code, error.type) if name)
        if isinstance(error, openai.APIStatusError):
            wait = parse_retry_after(error.response.headers, self._clock())
            return ProviderFault(error.status_code, types, _error_message(error), error, wait)
        return ProviderFault(int(code) if code.isdigit() else 200, types, _error_message(error), error)


def _error_message(error: openai.APIError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return message if isinstance(message, str) and message else error.message


def _limits(window: int, source: str) -> ModelLimits:
    """A quarter of a small window is left for the answer: servers add both up."""
    return ModelLimits(window, min(MAX_OUTPUT, max(256, window // 4)), MAX_BYTES, MAX_IMAGES, source)


def _estimate(body: Mapping[str, Any]) -> int:
    """Tokens of a prompt for servers that report none; images would drown it and are left out."""
    parts = [message for message in body["messages"] if not isinstance(message.get("content"), list)]
    return len(json.dumps([parts, body.get("tools", [])], ensure_ascii=False)) // CHARS_PER_TOKEN
