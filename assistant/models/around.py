"""A model around another one: it is called what that one is called, and closes it. What becomes of a stream is for
whoever is made of it."""

from __future__ import annotations

from assistant.core.model_api import ModelLimits
from assistant.core.ports import Model


class Around:
    """All of `ports.Model` but `stream`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def provider(self) -> str:
        return self._model.provider

    async def limits(self) -> ModelLimits:
        return await self._model.limits()

    async def aclose(self) -> None:
        await self._model.aclose()
