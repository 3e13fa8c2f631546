"""Measures how full a session's context is: token counts per model (`TokenEstimates`) and what is sent besides the
history (`ContextMeter`).

The same limits are used for planning, for sending and for display, so that nothing is compacted by one measure and
refused by another. A turn is measured for the model that answers it, an idle session for the currently chosen model.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from assistant.context.build import PromptFrame
from assistant.context.pressure import (
    Pressure,
    PromptSize,
    RequestBudgets,
    effective_budgets,
    measure_pressure,
    utf8_length,
)
from assistant.context.prompt_parts import measure_view_parts
from assistant.context.provenance import find_untrusted
from assistant.context.tokens import TokenCounter, update_calibration
from assistant.core.model_api import FULL_CONTEXT_TOKENS, ModelLimits, ModelRequest, PromptParts
from assistant.core.ports import Model
from assistant.core.records import ContextView
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.recall import recall_budget
from assistant.runtime.tool_registry import ToolRegistry
from assistant.settings.sections import CompactionSettings, ContextSettings
from assistant.store.script.turns import Pins
from assistant.store.script.usage import ModelFacts
from sleep.compaction.draft_view import is_compaction_prefix
from sleep.compaction.values import CompactionLimits

_FRAMES_KEPT = 32
# Smaller changes of the factor are not worth a write.
_MIN_FACTOR_CHANGE = 0.01


class TokenEstimates:
    """Estimates tokens per model, with the best available counter, corrected by what the provider reported earlier."""

    def __init__(self, facts: ModelFacts, counter_for: Callable[[str], TokenCounter]) -> None:
        self._facts = facts
        self._counter_for = counter_for
        self._counters: dict[str, TokenCounter] = {}
        self._measured: dict[str, tuple[ModelRequest, str, int]] = {}  # by turn

    def counter(self, model: str) -> TokenCounter:
        """Return the model's counter, with what was learned of it in earlier processes."""
        if model not in self._counters:
            counter = self._counter_for(model)
            calibration = self._facts.calibration(model)
            self._counters[model] = counter.with_calibration(calibration) if calibration else counter
        return self._counters[model]

    def calibrate(self, model: str, estimated: int, reported: int, now: datetime) -> None:
        """Update the calibration from the reported size of a prompt."""
        counter = self.counter(model)
        calibration = update_calibration(counter.calibration, model, estimated, reported)
        self._counters[model] = counter.with_calibration(calibration)
        if counter.calibration is None or abs(calibration.factor - counter.factor) > _MIN_FACTOR_CHANGE:
            self._facts.set_calibration(calibration, now)

    def remember_size(self, turn: str, request: ModelRequest, model: str, prompt_tokens: int) -> None:
        """Cache the measured size of a turn's newest request."""
        self._measured[turn] = request, model, prompt_tokens

    def discard_turn(self, turn: str) -> None:
        self._measured.pop(turn, None)

    def request_tokens(self, request: ModelRequest, model: str) -> int:
        """Return the prompt size of a request as this model is expected to bill it."""
        for measured, its_model, prompt_tokens in self._measured.values():
            if measured is request and its_model == model:
                return prompt_tokens
        counter = self.counter(model)
        system = sum(counter.count_text(block.text) for block in request.system)
        messages = sum(counter.count_message(message) + counter.count_thinking(message) for message in request.messages)
        volatile = sum(counter.count_text(str(message.metadata.get("volatile", ""))) for message in request.messages)
        return counter.corrected(system + messages + volatile + counter.count_tools(request.tools))

    def describe(self, model: str) -> str:
        """Return how tokens are counted for a model, and why, as one line for `status`."""
        return self.counter(model).describe()


class ContextMeter:
    """Limits, prompt frames and pressure of all sessions of a home."""

    def __init__(
        self,
        conversation: Conversation,
        pins: Pins,
        toolbox: ToolRegistry,
        models: CurrentModels,
        estimates: TokenEstimates,
        context_settings: ContextSettings,
        compaction_settings: CompactionSettings,
        *,
        rules: str,
        persona: str,
        standing_memory: Callable[[str], str] = lambda session: "",
        zone: tzinfo = UTC,
    ) -> None:
        """`rules` and `persona` are in every prompt; `standing_memory` returns the memory block of a session's
        prompts."""
        self._conversation = conversation
        self._pins = pins
        self._toolbox = toolbox
        self._models = models
        self._estimates = estimates
        self._rules = rules
        self._persona = persona
        self._standing_memory = standing_memory
        self._zone = zone
        self.context_settings = context_settings
        self.compaction_settings = compaction_settings
        self._frames: dict[
            tuple[str, str, tuple[tuple[str, str], ...], str, tuple[str, ...]], tuple[PromptFrame, PromptSize]
        ] = {}
        # By role, topics of the tools that are not in the prompt, and model.
        self._tool_sizes: dict[tuple[str, tuple[str, ...], str], PromptSize] = {}
        self._chosen: tuple[Model, ModelLimits] | None = None

    def counter(self, model: str) -> TokenCounter:
        """Return the token counter of this model."""
        return self._estimates.counter(model)

    def effective_window(self) -> int:
        """Return the effective context of the chosen model in tokens; `FULL_CONTEXT_TOKENS` while its limits are
        unknown."""
        limits = self._chosen_limits()
        return FULL_CONTEXT_TOKENS if limits is None else self._budgets(limits).tokens

    @property
    def chosen_model(self) -> tuple[str, ModelLimits] | None:
        """Name and limits of the chosen model, None while they are unknown."""
        limits = self._chosen_limits()
        return None if limits is None else (self._models.answering.name, limits)

    @property
    def knows_model(self) -> bool:
        """Whether the answering model's limits were learned."""
        return self._chosen_limits() is not None

    async def load_model_limits(self) -> None:
        """Query the chosen model's limits if they are unknown."""
        while self._chosen_limits() is None:
            model = self._models.answering
            self.set_limits(model, await model.limits())

    def set_limits(self, model: Model, limits: ModelLimits) -> None:
        """Set a model's limits; ignored unless it is the chosen one."""
        if model is self._models.answering:
            self._chosen = (model, limits)

    def _chosen_limits(self) -> ModelLimits | None:
        if self._chosen is None or self._chosen[0] is not self._models.answering:
            return None
        return self._chosen[1]

    async def load_terms(self, session: str) -> CompactionLimits:
        """Return the limits of an idle session, querying the model's limits if necessary."""
        while (terms := self.terms(session)) is None:
            await self.load_model_limits()
        return terms

    def terms(self, session: str) -> CompactionLimits | None:
        """Return the limits of an idle session, or None while the model's limits are unknown."""
        limits = self._chosen_limits()
        return None if limits is None else self.frame_and_terms(session, self._models.answering.name, limits, "")[1]

    def frame_and_terms(
        self, session: str, model: str, limits: ModelLimits, volatile: str
    ) -> tuple[PromptFrame, CompactionLimits]:
        """Return what surrounds the history in a prompt, and the limits for a call of this model; `volatile` is sent
        with it but not kept."""
        counter = self._estimates.counter(model)
        frame, fixed = self.frame(session, model)
        return frame, CompactionLimits(
            budgets=self._budgets(limits),
            counter=counter,
            fixed=fixed,
            adding=PromptSize(counter.count_text(volatile), utf8_length(volatile)) if volatile else PromptSize(),
            target=self.context_settings.target,
            threshold=self.context_settings.emergency_threshold,
            protected_tools=self._toolbox.protected | frozenset(self.compaction_settings.protected_tools),
            zone=self._zone,
        )

    def pressure(self, view: ContextView, terms: CompactionLimits) -> Pressure:
        return measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)

    def pressure_ratio(self, session: str) -> float:
        """Return how full the session's context is, 0-1 and above; 0 while the model's limits are unknown."""
        terms = self.terms(session)
        return 0.0 if terms is None else self.pressure(self._conversation.load_view(session), terms).ratio

    def approximate_ratio(self, view_tokens: int) -> float:
        """Like `pressure_ratio`, from the total of a view alone: no message is read."""
        limits = self._chosen_limits()
        if limits is None:
            return 0.0
        budgets = self._budgets(limits)
        fixed = max((size.tokens for _, size in self._frames.values()), default=0)
        return (view_tokens + fixed + budgets.reserve) / budgets.tokens if budgets.tokens else 0.0

    async def load_pressure_ratio(self, session: str) -> float:
        """Like `pressure_ratio`, querying the model's limits if necessary."""
        await self.load_model_limits()
        return self.pressure_ratio(session)

    def has_too_many_messages(self, view: ContextView) -> bool:
        """Return whether the view has `compaction.max_messages` or more, and at least twice as many as a compaction
        preserves: otherwise compactions would repeat endlessly (I7)."""
        limit = self.compaction_settings.max_messages
        if not limit or len(view.messages) < limit:
            return False
        movable = sum(1 for row in view.messages if not is_compaction_prefix(row))
        return movable >= 2 * self.context_settings.preserve_messages

    def frame(self, session: str, model: str) -> tuple[PromptFrame, PromptSize]:
        """Return what surrounds the session's history in a prompt, and its size for this model."""
        role, pins = session_role(session), tuple((pin.role, pin.text) for pin in self._pins.list_pins(session))
        key = (role, model, pins, self._standing_memory(session), self._toolbox.topics(role))
        if key not in self._frames:
            frame = PromptFrame(self._rules, self._persona, self._toolbox.specs(role), role, pins, key[3])
            self._frames[key] = frame, frame.size(self._estimates.counter(model), self._tool_size(frame, model))
            while len(self._frames) > _FRAMES_KEPT:
                self._frames.pop(next(iter(self._frames)))
        return self._frames[key]

    def request_parts(self, view: ContextView, frame: PromptFrame, model: str, terms: CompactionLimits) -> PromptParts:
        """Return approximate token counts per part of a request over this view."""
        tools = self._tool_size(frame, model).tokens
        return measure_view_parts(view, tools, terms.fixed.tokens, terms.adding.tokens, terms.counter)

    def _tool_size(self, frame: PromptFrame, model: str) -> PromptSize:
        key = (frame.role, self._toolbox.topics(frame.role), model)
        if key not in self._tool_sizes:
            self._tool_sizes[key] = frame.tool_size(self._estimates.counter(model))
        return self._tool_sizes[key]

    def untrusted_sources(self, view: ContextView, volatile: str) -> tuple[str, ...]:
        """Return the sources in a request over this view other than the user's own current message."""
        return find_untrusted(
            view.messages,
            volatile=volatile,
            memory=self._standing_memory(view.session),
            pins=[(pin.role, pin.text) for pin in self._pins.list_pins(view.session)],
            silent_tools=self._toolbox.silent_tools,
        )

    def recall_budget(self, max_tokens: int) -> int:
        """Scale a token limit for recalled text from a full context to the current one."""
        return recall_budget(max_tokens, self.effective_window())

    def _budgets(self, limits: ModelLimits) -> RequestBudgets:
        settings = self.context_settings
        return effective_budgets(
            limits,
            max_context_tokens=settings.max_context_tokens,
            reserve_tokens=settings.reserve_tokens,
            max_request_bytes=settings.max_request_bytes,
            max_images=settings.max_images,
        )
