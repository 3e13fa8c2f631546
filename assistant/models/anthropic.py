"""Anthropic's Messages API through the official SDK.

What always holds: every call is streamed; the SDK's own retries are off, so that each attempt is metered (I9);
whatever goes wrong is raised as a `ModelError`. A stall is a silence of the connection: while the provider sends
anything, even pings, it is working (models think for minutes without a word).

What a view holds is much, and goes out again with each call: requests are written and events read as they are, by the
SDK's own methods for any address, without the SDK's copy of each part.

Signed thinking blocks are bound to everything that stood before them. When the view was shortened or the tools changed
within a tool loop, the provider refuses them, and the same request goes out once more without any.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

import httpx2

from assistant.core.errors import ModelError
from assistant.core.imports import deferred_reexports, hidden_modules
from assistant.core.model_api import CallPurpose, ModelEvent, ModelLimits, ModelRequest
from assistant.core.ports import ModelFactsPort
from assistant.core.text import beside_loop_if_many
from assistant.models.anthropic_format import AnthropicAnswer, render_anthropic_request
from assistant.models.connection import RequestBody, limit_size, proxy_remark
from assistant.models.encoding import MalformedProviderData, encode_body, read_token_count, require_object
from assistant.models.errors import (
    ProviderFault,
    ProviderLabel,
    connection_lost_error,
    connection_lost_reason,
    parse_retry_after,
)
from assistant.models.limits import LIMITS_TIMEOUT_SECONDS, LimitsCache
from assistant.models.prices import ANTHROPIC_URL

# Types of requests, answers and events that nothing here makes: the SDK's tracing names them. And its 120 classes of
# single errors, each with a module and a model of its details, which are loaded when one of them is raised.
_SELDOM_MADE = (
    *("_param", "_params", "types.message", ".beta_message", "parsed_message", "parsed_beta_message"),
    *("_message_stream_event", "_message_start_event", "_error"),
)
# All of it takes a second and 50 MB, and most of that is types of interfaces that are never called.
with deferred_reexports("anthropic", _SELDOM_MADE):
    import anthropic
    from anthropic import AsyncAnthropic, AsyncStream

NO_KEY = "There is no key for Anthropic. Your message is kept. Run `assistant setup model`, or set ANTHROPIC_API_KEY."
ANTHROPIC_LABEL = ProviderLabel("anthropic", "Anthropic")
CONNECT_SECONDS = 10.0
MAX_BYTES = 32_000_000
# Every current model takes at least this much.
DEFAULT_LIMITS = ModelLimits(window=200_000, max_output=32_000, max_bytes=MAX_BYTES, max_images=100)
MANY_IMAGES = 600

# Which type says "do not think" differs by model; some always think, and are then asked nothing.
_THINKING_TYPES: Mapping[str, tuple[str, ...]] = {"off": ("disabled", "between_tools"), "adaptive": ("adaptive",)}

_BROKEN = (httpx2.HTTPError, anthropic.APIConnectionError, ValueError, RecursionError)
_TIMEOUTS = (httpx2.TimeoutException, anthropic.APITimeoutError)


class AnthropicModel:
    """One Claude model. `base_url` "" is Anthropic's own; `stall_seconds` without a byte end a call."""

    provider = ANTHROPIC_LABEL.provider

    def __init__(
        self,
        name: str,
        api_key: str,
        *,
        clock: Callable[[], datetime],
        base_url: str = "",
        thinking: Literal["off", "adaptive"] = "off",
        stall_seconds: float = 90.0,
        facts: ModelFactsPort | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._limits_cache = LimitsCache(facts, clock)
        self._stall_seconds = stall_seconds
        self._thinking = thinking
        self._thinking_type: str | None = None
        self._has_key = bool(api_key)
        # The HTTP client would load them where something else installed them; neither is used.
        with hidden_modules("trio", "h2"):
            self._client = AsyncAnthropic(
                api_key=api_key or "none",
                base_url=base_url or ANTHROPIC_URL,
                max_retries=0,
                timeout=httpx2.Timeout(stall_seconds, connect=min(stall_seconds, CONNECT_SECONDS)),
            )

    async def limits(self) -> ModelLimits:
        if self._limits_cache.get_limits(self.name) is None:
            await self._learn_limits()
        return self._limits_cache.get_limits(self.name) or DEFAULT_LIMITS

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """As the port says. The model's limits are asked for before, if nothing is known of them; a missing key is a
        `ModelError` of kind "auth"."""
        if not self._has_key:
            raise ModelError(NO_KEY, kind="auth", provider=self.provider)
        await self._learn_limits()
        max_output = min(request.max_output_tokens, (await self.limits()).max_output)
        request = replace(request, max_output_tokens=max_output)
        answer = AnthropicAnswer(self.name)
        try:
            async with await self._open(request) as events:
                limit_size(events.response)
                async for event in events:
                    for progress in answer.progress(answer.feed(require_object(event))):
                        yield progress
                    if answer.is_endless:
                        answer.cut_off()
                        break
            if not answer.finished:
                raise MalformedProviderData("the stream ended before the answer did")
        except anthropic.APIStatusError as error:
            raise self._to_fault(error).to_model_error(ANTHROPIC_LABEL, answer.partial) from error
        except _BROKEN as error:
            reason = connection_lost_reason(error, _TIMEOUTS, self._stall_seconds)
            reason += proxy_remark(str(self._client.base_url)) if not answer.begun else ""
            raise connection_lost_error(ANTHROPIC_LABEL, reason, answer.partial) from error
        yield answer.reply()

    async def aclose(self) -> None:
        await self._client.close()

    async def _open(self, request: ModelRequest) -> AsyncStream[object]:
        try:
            return await self._create(await self._render(request))
        except anthropic.BadRequestError as error:
            bare = replace(request, messages=tuple(replace(message, thinking=()) for message in request.messages))
            if bare == request or "thinking" not in str(error).lower():
                raise
        return await self._create(await self._render(bare))

    async def _render(self, request: ModelRequest) -> dict[str, Any]:
        return await beside_loop_if_many(
            request.messages, render_anthropic_request, request, self.name, thinking=self._thinking_type or ""
        )

    async def _create(self, body: dict[str, Any]) -> AsyncStream[object]:
        with RequestBody(encode_body({**body, "stream": True})) as sent:
            return await self._client.post(
                "/v1/messages",
                content=sent,
                options={"headers": sent.headers},
                cast_to=object,
                stream=True,
                stream_cls=AsyncStream[object],
            )

    async def _learn_limits(self) -> None:
        """Asks for the window, and which thinking types the model takes, once a process."""
        if self._thinking_type is not None or not self._has_key or not self._limits_cache.may_ask():
            return
        try:
            path = f"/v1/models/{quote(self.name, safe='')}"
            info = require_object(
                await self._client.get(path, cast_to=object, options={"timeout": LIMITS_TIMEOUT_SECONDS})
            )
            self._thinking_type = _thinking_type(self._thinking, info)
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError, RecursionError):
            self._limits_cache.record_failure()
            return
        if limits := _limits(info):
            self._limits_cache.save_limits(self.name, limits)

    def _to_fault(self, error: anthropic.APIStatusError) -> ProviderFault:
        return ProviderFault(
            error.status_code,
            tuple(name for name in (error.type, error.error_code) if name),
            error.api_message or error.message,
            error,
            parse_retry_after(error.response.headers, self._clock()),
        )


def _limits(info: Mapping[str, Any]) -> ModelLimits | None:
    window, output = read_token_count(info.get("max_input_tokens")), read_token_count(info.get("max_tokens"))
    if not window:
        return None
    images = DEFAULT_LIMITS.max_images if window <= DEFAULT_LIMITS.window else MANY_IMAGES
    return ModelLimits(window, output or DEFAULT_LIMITS.max_output, MAX_BYTES, images, "provider")


def _thinking_type(setting: str, info: Mapping[str, Any]) -> str:
    """The first type for `model.thinking` that the model takes; "" where none is known."""
    match info:
        case {"capabilities": {"thinking": {"types": dict(types)}}}:
            supported = (name for name in _THINKING_TYPES[setting] if require_object(types.get(name)).get("supported"))
            return next(supported, "")
        case _:
            return ""
