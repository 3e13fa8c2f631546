"""The models that a home uses now, and how one is exchanged for another while work is under way (`/model`).

What always holds: work that began with a model ends with it. Budgets, counted tokens, signed thinking and the
provider's cache belong to one model, so a choice made meanwhile counts for the next piece of work. A model that was
replaced is closed once, when nothing is under way that may use it.
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
        """The model that the next turn is answered by."""
        return self._current.answering

    @property
    def writing(self) -> Model:
        """The economical model that the next summary or journal entry is written by."""
        return self._current.writing

    @contextmanager
    def use(self) -> Iterator[ModelPair]:
        """The models of now; what replaces them meanwhile closes none of them."""
        self._users += 1
        try:
            yield self._current
        finally:
            self._users -= 1
            self._close_replaced()

    def replace(self, models: ModelPair) -> None:
        """What begins from now on uses these."""
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
        """Close all of them, in use or not: for the end of the process."""
        replaced, self._replaced = self._replaced, []
        await asyncio.gather(*self._closing)
        await _close([*replaced, self._current.answering, self._current.writing])


async def _close(models: list[Model]) -> None:
    for model in {id(model): model for model in models}.values():
        await model.aclose()


class ModelChoice:
    """The choice of a model for as long as the daemon runs."""

    def __init__(
        self,
        models: CurrentModels,
        build: Callable[[str], ModelPair],
        is_answering: Callable[[], bool],
        list_choices: Callable[[], Mapping[str, str]],
    ) -> None:
        """- `build`: makes the models of a choice, and raises `UsageError` for one that there is not.
        - `list_choices`: those that are known, with what is to be said of them.
        - `is_answering`: whether a turn runs, which ends with the model that it began with.
        """
        self._models = models
        self._build = build
        self._is_answering = is_answering
        self.list_choices = list_choices

    def describe(self) -> str:
        """The model that answers."""
        return model_label(self._models.answering)

    def choose(self, choice: str) -> str:
        """Have `provider` or `provider:name` answer until the daemon is restarted. Raises `UsageError`."""
        self._models.replace(self._build(choice))
        since = "From the next message on" if self._is_answering() else "From now on"
        return f"{since}: {self.describe()}"


def model_label(model: Model) -> str:
    """The model that answers, for a person."""
    return f"{model.provider} {model.name}" if model.provider != model.name else model.name
