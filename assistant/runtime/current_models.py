"""The models that a home uses now, and how one is exchanged for another while work is under way.

What always holds: work that began with a model ends with it. Budgets, counted tokens, signed thinking and the
provider's cache belong to one model, so a choice made meanwhile counts for the next piece of work. A model that was
replaced is closed once, when nothing is under way that may use it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assistant.core.ports import Model, ModelPair


class CurrentModels:
    """The models of a home."""

    def __init__(self, answering: Model, writing: Model) -> None:
        self._current = ModelPair(answering, writing)
        self._users = 0
        self._replaced: list[Model] = []
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def answering(self) -> Model:
        """The model that the next turn is answered by."""
        return self._current.answering

    @property
    def writing(self) -> Model:
        """The economical model that the next summary or journal entry is written by."""
        return self._current.writing

    def pin(self) -> PinnedModels:
        """The models of now, for work that has no block of its own; `release` it at the end."""
        self._users += 1
        return PinnedModels(self._current, self._release)

    @contextmanager
    def use(self) -> Iterator[ModelPair]:
        """The models of now; what replaces them meanwhile closes none of them."""
        pin = self.pin()
        try:
            yield pin.models
        finally:
            pin.release()

    def replace(self, answering: Model, writing: Model) -> None:
        """What begins from now on uses these."""
        previous, self._current = self._current, ModelPair(answering, writing)
        self._replaced += [
            model for model in (previous.answering, previous.writing) if model is not answering and model is not writing
        ]
        self._close_replaced()

    def _release(self) -> None:
        self._users -= 1
        self._close_replaced()

    def _close_replaced(self) -> None:
        if self._users or not self._replaced:
            return
        replaced, self._replaced = self._replaced, []
        task = asyncio.create_task(_close(replaced), name="closing a replaced model")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all of them, in use or not: for the end of the process."""
        replaced, self._replaced = self._replaced, []
        await asyncio.gather(*self._closing)
        await _close([*replaced, self._current.answering, self._current.writing])


class PinnedModels:
    """Models in use until `release`, which may be called again."""

    def __init__(self, models: ModelPair, release: Callable[[], None]) -> None:
        self.models = models
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


async def _close(models: list[Model]) -> None:
    for model in {id(model): model for model in models}.values():
        await model.aclose()
