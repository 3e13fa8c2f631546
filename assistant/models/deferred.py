"""A model whose SDK is imported when it is first needed, off the event loop: SDKs take a second to import, and the
daemon is ready to take messages long before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from assistant.core.model_api import CallPurpose, ModelEvent, ModelLimits, ModelRequest
from assistant.core.ports import Model


class Deferred:
    """`load` makes the model, once; `name` is what it is called until it can say so itself."""

    def __init__(self, provider: str, name: str, load: Callable[[], Model]) -> None:
        self._provider = provider
        self._name = name
        self._load = load
        self._model: Model | None = None
        self._loading = asyncio.Lock()

    @property
    def name(self) -> str:
        return (self._model.name if self._model else "") or self._name

    @property
    def provider(self) -> str:
        return self._provider

    async def limits(self) -> ModelLimits:
        return await (await self._loaded()).limits()

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        model = await self._loaded()
        async with aclosing(model.stream(request, purpose, session=session, turn=turn)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()

    async def _loaded(self) -> Model:
        async with self._loading:
            if self._model is None:
                self._model = await asyncio.to_thread(self._load)
            return self._model
