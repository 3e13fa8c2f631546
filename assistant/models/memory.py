"""What a provider said of a model's limits: asked once, remembered in the home, a careful default until then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from assistant.core.errors import StoreError
from assistant.core.model_api import ModelLimits
from assistant.core.ports import ModelFactsPort

ASK_SECONDS = 4.0
ASK_AGAIN = timedelta(minutes=5)


class LimitsMemory:
    """The limits of one model. A store that fails costs nothing but asking again after the next start."""

    def __init__(self, facts: ModelFactsPort | None, clock: Callable[[], datetime]) -> None:
        self._facts = facts
        self._clock = clock
        self._known: ModelLimits | None = None
        self._ask_after: datetime | None = None

    def recall(self, key: str) -> ModelLimits | None:
        """What is known, from this process or an earlier one."""
        if self._known is None and self._facts is not None:
            try:
                self._known = self._facts.limits(key)
            except StoreError:
                return None
        return self._known

    def keep(self, key: str, limits: ModelLimits) -> None:
        if limits == self.recall(key):
            return
        self._known = limits
        if self._facts is not None:
            try:
                self._facts.set_limits(key, limits, self._clock())
            except StoreError:
                pass

    def may_ask(self) -> bool:
        """Whether the provider may be asked now: a failure is not repeated with every call."""
        return self._ask_after is None or self._clock() >= self._ask_after

    def failed(self) -> None:
        self._ask_after = self._clock() + ASK_AGAIN
