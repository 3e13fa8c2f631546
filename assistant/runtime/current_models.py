"""The models in use, and how they are replaced (`/model`) while work is in progress.

Work ends with the model it began with: budgets, token counts, signed thinking and the provider's cache belong to one
model, so a new choice applies to later work. A replaced model is closed once nothing can be using it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from assistant.core.ports import Model, ModelPair


class CurrentModels:
    """The models of a home."""

    def __init__(self, models: ModelPair) -> None:
        self._current = models
        self._users = 0
        self._replaced: list[Model] = []
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def answering(self) -> Model:
        """The model that answers the next turn."""
        return self._current.answering

    @property
    def writing(self) -> Model:
        """The economical model for summaries and journal entries."""
        return self._current.writing

    @contextmanager
    def use(self) -> Iterator[ModelPair]:
        """Yield the current models, which stay open within the context even if they are replaced."""
        self._users += 1
        try:
            yield self._current
        finally:
            self._users -= 1
            self._close_replaced()

    def replace(self, models: ModelPair) -> None:
        """Use these models for new work."""
        previous, self._current = self._current, models
        current = (models.answering, models.writing)
        self._replaced += [model for model in (previous.answering, previous.writing) if model not in current]
        self._close_replaced()

    def _close_replaced(self) -> None:
        if self._users or not self._replaced:
            return
        replaced, self._replaced = self._replaced, []
        task = asyncio.create_task(_close(replaced), name="closing a replaced model")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all models, even if in use; for process exit."""
        replaced, self._replaced = self._replaced, []
        await asyncio.gather(*self._closing)
        await _close([*replaced, self._current.answering, self._current.writing])


async def _close(models: list[Model]) -> None:
    for model in {id(model): model for model in models}.values():
        await model.aclose()


class ModelChoice:
    """The runtime choice of a model, until the daemon restarts."""

    def __init__(
        self,
        models: CurrentModels,
        build: Callable[[str], ModelPair],
        is_answering: Callable[[], bool],
        list_choices: Callable[[], Mapping[str, str]],
    ) -> None:
        """- `build`: creates the models of a choice; raises `UsageError` for an unknown one.
        - `list_choices`: known choices with descriptions.
        - `is_answering`: whether a turn is running (it keeps its model).
        """
        self._models = models
        self._build = build
        self._is_answering = is_answering
        self.list_choices = list_choices

    def describe(self) -> str:
        """Return the label of the answering model."""
        return model_label(self._models.answering)

    def choose(self, choice: str) -> str:
        """Switch to `provider` or `provider:name` until the daemon restarts. Raises `UsageError`."""
        self._models.replace(self._build(choice))
        since = "From the next message on" if self._is_answering() else "From now on"
        return f"{since}: {self.describe()}"


def model_label(model: Model) -> str:
    """Return a model's display name."""
    return f"{model.provider} {model.name}" if model.provider != model.name else model.name
