"""How full a session's context is, and what that is measured by: who answers, how they count, what stands around the
history.

What always holds: the same terms are used for planning, for sending and for what a person is shown, so that nothing is
compacted by one measure and refused by another. Whoever answered last is the measure of a session at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo

from assistant.context.build import PromptFrame
from assistant.context.pressure import (
    FULL_CONTEXT_TOKENS,
    Pressure,
    PromptSize,
    RequestBudgets,
    effective_budgets,
    measure_pressure,
    utf8_length,
)
from assistant.context.tokens import TokenCounter
from assistant.core.model_api import ModelLimits
from assistant.core.ports import Model, ModelFactsPort, ToolboxPort
from assistant.core.records import ContextView
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation
from assistant.settings.sections import CompactionSettings, ContextSettings
from assistant.store.script.requests import Pins
from sleep.compaction.draft_view import is_compaction_prefix
from sleep.compaction.values import CompactionLimits

_FRAMES_KEPT = 32


@dataclass(frozen=True, slots=True)
class SystemPrompts:
    """The words that stand in every prompt, as the home has them."""

    rules: str
    persona: str


class ContextMeter:
    """Terms, frames and pressure of every session of a home."""

    def __init__(
        self,
        conversation: Conversation,
        facts: ModelFactsPort,
        pins: Pins,
        toolbox: Callable[[], ToolboxPort],
        model: Callable[[], Model],
        counter_for: Callable[[str], TokenCounter],
        context_settings: ContextSettings,
        compaction_settings: CompactionSettings,
        prompts: SystemPrompts,
        standing_memory: Callable[[str], str] = lambda session: "",
        zone: tzinfo = UTC,
    ) -> None:
        """`memory` gives what stands in the prompts of a session of what is remembered; `zone` is the home's."""
        self._conversation = conversation
        self._facts = facts
        self._pins = pins
        self._toolbox = toolbox
        self._model = model
        self._counter_for = counter_for
        self._prompts = prompts
        self._memory = standing_memory
        self._zone = zone
        self.context_settings = context_settings
        self.compaction_settings = compaction_settings
        self._counters: dict[str, TokenCounter] = {}
        self._frames: dict[tuple[str, str, tuple[tuple[str, str], ...], str], tuple[PromptFrame, PromptSize]] = {}
        self._met: tuple[str, ModelLimits] | None = None

    def effective_window(self) -> int:
        """The effective context of whoever answers, in tokens; a full one before anybody was asked."""
        return FULL_CONTEXT_TOKENS if self._met is None else self._budgets(self._met[1]).tokens

    @property
    def knows_model(self) -> bool:
        return self._met is not None

    async def load_model_limits(self) -> None:
        """Ask whoever would answer for their limits, where nobody was asked yet."""
        if self._met is None:
            model = self._model()
            self.set_model(model.name, await model.limits())

    def forget_model(self) -> None:
        """Somebody else answers from now on, who has to be asked first."""
        self._met = None

    def set_model(self, model: str, limits: ModelLimits) -> None:
        """Whoever answers from now on."""
        self._met = (model, limits)

    def terms(self, session: str, volatile: str = "") -> CompactionLimits | None:
        """What the session's next call is measured by; None before anybody was asked for their limits."""
        if self._met is None:
            return None
        model, limits = self._met
        counter = self.counter(model)
        _, fixed = self.frame(session, model)
        return CompactionLimits(
            budgets=self._budgets(limits),
            counter=counter,
            fixed=fixed,
            adding=PromptSize(counter.count_text(volatile), utf8_length(volatile)) if volatile else PromptSize(),
            target=self.context_settings.target,
            threshold=self.context_settings.emergency_threshold,
            protected_tools=self._toolbox().protected | frozenset(self.compaction_settings.protected_tools),
            zone=self._zone,
        )

    def pressure(self, view: ContextView, terms: CompactionLimits) -> Pressure:
        return measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)

    def pressure_ratio(self, session: str) -> float:
        """How full the session's context is, 0-1 and above; 0 before a model was asked for its limits."""
        terms = self.terms(session)
        return 0.0 if terms is None else self.pressure(self._conversation.load_view(session), terms).ratio

    def has_too_many_messages(self, view: ContextView) -> bool:
        """Whether there are `compaction.max_messages` in view, and more of them than a compaction leaves alone: where
        that and what is kept word for word are too many already, one would follow the other (I7)."""
        most = self.compaction_settings.max_messages
        if not most or len(view.messages) < most:
            return False
        return (
            sum(1 for row in view.messages if not is_compaction_prefix(row))
            >= 2 * self.context_settings.preserve_messages
        )

    def frame(self, session: str, model: str) -> tuple[PromptFrame, PromptSize]:
        """What stands around the history of a session, and its size as this model counts."""
        role, pins = session_role(session), tuple((pin.role, pin.text) for pin in self._pins.list_pins(session))
        memory = self._memory(session)
        known = self._frames.get((role, model, pins, memory))
        if known is None:
            frame = PromptFrame(
                self._prompts.rules, self._prompts.persona, self._toolbox().specs(role), role, pins, memory
            )
            known = self._frames[role, model, pins, memory] = (frame, frame.size(self.counter(model)))
            while len(self._frames) > _FRAMES_KEPT:
                self._frames.pop(next(iter(self._frames)))
        return known

    def counter(self, model: str) -> TokenCounter:
        if model not in self._counters:
            counter = self._counter_for(model)
            known = self._facts.calibration(model)
            self._counters[model] = counter.with_calibration(known) if known else counter
        return self._counters[model]

    def set_counter(self, model: str, counter: TokenCounter) -> None:
        self._counters[model] = counter

    def _budgets(self, limits: ModelLimits) -> RequestBudgets:
        settings = self.context_settings
        return effective_budgets(
            limits,
            max_context_tokens=settings.max_context_tokens,
            reserve_tokens=settings.reserve_tokens,
            max_request_bytes=settings.max_request_bytes,
            max_images=settings.max_images,
        )
