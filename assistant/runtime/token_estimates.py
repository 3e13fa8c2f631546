"""How many tokens a request will have, as each model counts: by the best counter that there is for it, corrected by
what the provider reported earlier."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

from assistant.context.tokens import TokenCounter, update_calibration
from assistant.core.model_api import ModelRequest
from assistant.store.script.state import ModelFacts

_MAX_REQUESTS = 64
# A factor that moved less than this since the last call is not worth a write.
_MIN_FACTOR_CHANGE = 0.01


class TokenEstimates:
    """Counters by model, with their calibration; and the sizes of requests that were measured when they were made."""

    def __init__(self, facts: ModelFacts, counter_for: Callable[[str], TokenCounter]) -> None:
        self._facts = facts
        self._counter_for = counter_for
        self._counters: dict[str, TokenCounter] = {}
        self._measured: OrderedDict[str, tuple[ModelRequest, str, int]] = OrderedDict()

    def counter(self, model: str) -> TokenCounter:
        if model not in self._counters:
            counter = self._counter_for(model)
            calibration = self._facts.calibration(model)
            self._counters[model] = counter.with_calibration(calibration) if calibration else counter
        return self._counters[model]

    def calibrate(self, model: str, estimated: int, reported: int, now: datetime) -> None:
        """Learn from what a provider reported for a prompt of this estimate."""
        counter = self.counter(model)
        calibration = update_calibration(counter.calibration, model, estimated, reported)
        self._counters[model] = counter.with_calibration(calibration)
        if counter.calibration is None or abs(calibration.factor - counter.factor) > _MIN_FACTOR_CHANGE:
            self._facts.set_calibration(calibration, now)

    def remember_size(self, turn: str, request: ModelRequest, model: str, prompt_tokens: int) -> None:
        """The newest request of a turn was measured when it was made: it need not be counted again."""
        self._measured[turn] = request, model, prompt_tokens
        while len(self._measured) > _MAX_REQUESTS:
            self._measured.popitem(last=False)

    def discard_turn(self, turn: str) -> None:
        self._measured.pop(turn, None)

    def request_tokens(self, request: ModelRequest, model: str) -> int:
        """The whole prompt of a request, as this model is expected to bill it."""
        for measured, its_model, prompt_tokens in self._measured.values():
            if measured is request and its_model == model:
                return prompt_tokens
        counter = self.counter(model)
        system = sum(counter.count_text(block.text) for block in request.system)
        messages = sum(counter.count_message(message) + counter.count_thinking(message) for message in request.messages)
        volatile = sum(counter.count_text(str(message.metadata.get("volatile", ""))) for message in request.messages)
        return counter.corrected(system + messages + volatile + counter.count_tools(request.tools))

    def describe(self, model: str) -> str:
        """One line for `status`: how tokens are counted for a model, and why so."""
        return self.counter(model).describe()
