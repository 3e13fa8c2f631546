"""The OpenAI-compatible routes, for existing clients: chat completions and models.

The history such a client sends is already stored here: only the new part of a request becomes a message. System
messages of a client are not the person's text and are ignored.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Path, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.core.errors import AssistantError, StoreError
from assistant.web.client_threads import ClientThreads
from assistant.web.completions import ClientAnswer, Completions, NoAnswer
from assistant.web.deps import DaemonControl, OwnerReadApi
from assistant.web.errors import error_responses
from assistant.web.large_bodies import LargeBodyRoute
from assistant.web.routers import api_router
from assistant.web.schemas_completions import (
    MODEL_NAME,
    Completion,
    CompletionChoice,
    CompletionMessage,
    CompletionRequest,
    CompletionUsage,
    ModelEntry,
    ModelList,
    OpenAIErrorAnswer,
)

_errors = partial(error_responses, shape=OpenAIErrorAnswer)
# The API requires a creation time of the model: when its code was first written.
_FIRST = 1_763_596_800
_NO_STORE = {"Cache-Control": "no-store"}


def completion_routes(control: DaemonControl, reader: OwnerReadApi, terminal: TerminalBridge) -> list[BaseRoute]:
    """The parts of OpenAI's API that chat clients need. Tools, sampling and other models are not offered."""
    routes = api_router(tag="clients", responses=_errors(), route_class=LargeBodyRoute)
    completions = Completions(control, ClientThreads(reader), terminal)

    @routes.get("/models", summary="The models, for OpenAI-compatible clients: one, the assistant")
    async def models() -> ModelList:
        return ModelList(data=[ModelEntry(created=_FIRST)])

    @routes.get("/models/{model}", responses=_errors(404), summary="One of them")
    async def model(model: Annotated[str, Path(max_length=200)]) -> ModelEntry:
        _require_model(model)
        return ModelEntry(created=_FIRST)

    @routes.post(
        "/chat/completions",
        response_model=Completion,
        responses=_errors(404, 413),
        summary="Say something, from an OpenAI-compatible client",
    )
    async def complete(
        body: CompletionRequest,
        request: Request,
        retries: Annotated[int, Header(alias="x-stainless-retry-count", ge=0, description="As SDKs count.")] = 0,
    ) -> Response | Completion:
        """With `stream`, as server-sent events. The message is durable before the answer begins."""
        _require_model(body.model)
        made = int(reader.clock().timestamp())
        asked = completions.ask(body, request.is_disconnected, is_retry=retries > 0)
        if body.stream:
            frames = _stream(asked, completions, body, made)
            # Until here an error has its own status: the message is durable when the first frame is sent.
            first = await anext(frames)
            return StreamingResponse(_chain(first, frames), media_type="text/event-stream", headers=_NO_STORE)
        try:
            async with asked as answer:
                text = "".join([piece async for piece in answer.texts])
        except NoAnswer as error:
            raise HTTPException(503, str(error)) from None
        return Completion(
            id=_completion_id(answer, made),
            created=made,
            model=MODEL_NAME,
            choices=[CompletionChoice(message=CompletionMessage(content=text))],
            usage=await _usage(completions, answer),
            session=answer.session,
        )

    return routes.routes


def _require_model(name: str) -> None:
    if name != MODEL_NAME:
        raise HTTPException(404, f"There is no model {name!r:.80}; the assistant is {MODEL_NAME!r}. Nothing was done.")


def _completion_id(answer: ClientAnswer, made: int) -> str:
    return f"chatcmpl-{answer.inbox_id or made}"


async def _stream(
    asked: AbstractAsyncContextManager[ClientAnswer], completions: Completions, body: CompletionRequest, made: int
) -> AsyncIterator[bytes]:
    async with asked as answer:
        about = {"object": "chat.completion.chunk", "created": made, "model": MODEL_NAME}
        about["id"] = _completion_id(answer, made)

        def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return _frame({**about, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        try:
            async for text in answer.texts:
                yield chunk({"content": text}) if text else KEEPALIVE_COMMENT
            yield chunk({}, "stop")
            if body.stream_options is not None and body.stream_options.include_usage:
                usage = (await _usage(completions, answer)).model_dump()
                yield _frame({**about, "choices": [], "usage": usage})
        except (NoAnswer, StoreError) as error:
            yield _frame({"error": _error(error)})
    yield format_sse_event(data_str="[DONE]")


async def _chain(first: bytes, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for frame in frames:
        yield frame


def _frame(data: Mapping[str, Any]) -> bytes:
    return format_sse_event(data_str=json.dumps(data, ensure_ascii=False))


def _error(error: AssistantError) -> dict[str, Any]:
    """Return an error in the form SDKs read in a stream."""
    return {"message": str(error), "type": "server_error", "code": None, "param": None}


async def _usage(completions: Completions, answer: ClientAnswer) -> CompletionUsage:
    used = await completions.usage(answer)
    cached = used.get("cache_read", 0)
    prompt = used.get("input", 0) + cached + used.get("cache_write", 0)
    written = used.get("output", 0)
    return CompletionUsage(
        prompt_tokens=prompt,
        completion_tokens=written,
        total_tokens=prompt + written,
        prompt_tokens_details={"cached_tokens": cached},
    )
