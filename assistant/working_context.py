"""The working context of a session: what the next model call is sent, and that it fits.

What always holds: pressure is looked at before every model call, tool rounds included, and counts what is about to be
added and the room for the answer. Above the emergency threshold the view is brought down before the call is made.
When nothing more can be taken away (F02) the person is told once what the context is full of, and the call is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from assistant.context.build import Frame, build
from assistant.context.pressure import (
    Budgets,
    Pressure,
    Size,
    answer_room,
    budgets,
    estimated_prompt,
    measure,
    utf8_length,
)
from assistant.errors import StaleView
from assistant.ports import Conversation, Model, ModelFacts, Toolbox
from assistant.records import Turn, View
from assistant.requests import Limits, Reply, Request
from assistant.sessions import role_of
from assistant.settings import ContextSettings
from assistant.tokens import TokenCounter, learned
from sleep.compaction import carry_out
from sleep.floor import floor_plan
from sleep.plan import Plan, Terms

_CALLS_KEPT = 64
# A factor that moved less than this since the last call is not worth a write.
_WORTH_KEEPING = 0.01


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a call was prepared from, for learning from what it was billed."""

    model: str
    prefix_rev: int
    last_message_id: int
    estimated: int
    terms: Terms
    request: Request
    prompt_tokens: int


class WorkingContext:
    """Prepares requests for turns, and learns from their replies."""

    def __init__(
        self,
        conversation: Conversation,
        facts: ModelFacts,
        toolbox: Toolbox,
        counter_for: Callable[[str], TokenCounter],
        settings: ContextSettings,
        *,
        rules: str,
        persona: str,
        max_output_tokens: int,
    ) -> None:
        self._conversation = conversation
        self._facts = facts
        self._toolbox = toolbox
        self._counter_for = counter_for
        self._settings = settings
        self._rules, self._persona = rules, persona
        self._max_output = max_output_tokens
        self._counters: dict[str, TokenCounter] = {}
        self._frames: dict[tuple[str, str], tuple[Frame, Size]] = {}
        self._prepared: OrderedDict[str, _Prepared] = OrderedDict()
        self._limits: Limits | None = None
        self._model = ""
        self._at_floor: set[str] = set()

    async def prepare(self, turn: Turn, model: Model, now: datetime) -> tuple[Request, list[str]]:
        """The request for the next call of this turn, and what the person should be told of how it was made to fit."""
        limits = self._limits = await model.limits()
        self._model = model.name
        terms, frame = self._terms(turn, model.name, limits)
        view = self._conversation.view(turn.session)
        notes: list[str] = []
        if self._measure(view, terms).ratio >= self._settings.emergency_threshold:
            notes = self._make_room(turn.session, terms, "emergency", now)
            view = self._conversation.view(turn.session)
        pressure = self._measure(view, terms)
        room = answer_room(limits, pressure, self._max_output)
        request = build(view, frame, limits, volatile=turn.volatile, max_output_tokens=room)
        self._remember(turn, model.name, view, terms, request, pressure.prompt_tokens)
        return request, notes

    def recover(self, turn: Turn, attempt: int, now: datetime) -> list[str]:
        """The provider called the last request too long: bring the view down, further with every attempt."""
        prepared = self._prepared[turn.id]
        terms = prepared.terms
        view = self._conversation.view(turn.session)
        refused = self._measure(view, terms)
        smaller = terms.budgets.after_overflow(refused.prompt_tokens)
        terms = replace(terms, budgets=smaller, target=terms.target / attempt)
        return self._make_room(turn.session, terms, "overflow", now)

    def learn(self, turn: Turn, reply: Reply, now: datetime) -> None:
        """What the provider counted for the request becomes the measure of this view, and corrects later estimates."""
        prepared = self._prepared.pop(turn.id, None)
        if prepared is None or reply.estimated or reply.message.model not in (None, prepared.model):
            return
        reported = reply.usage.prompt
        self._conversation.report_usage(turn.session, prepared.prefix_rev, reported, prepared.last_message_id)
        counter = self._counter(prepared.model)
        known = learned(counter.calibration, prepared.model, prepared.estimated, reported)
        self._counters[prepared.model] = counter.calibrated(known)
        if counter.calibration is None or abs(known.factor - counter.factor) > _WORTH_KEEPING:
            self._facts.set_calibration(known, now)

    def pressure(self, session: str) -> float:
        """How full the session's context is, 0-1 and above; 0 before a model was asked for its limits."""
        if self._limits is None:
            return 0.0
        terms, _ = self._terms_of(session, "", self._model, self._limits)
        return self._measure(self._conversation.view(session), terms).ratio

    def request_tokens(self, request: Request, model: str) -> int:
        """The whole prompt of a request, as this model is expected to bill it; counted where it was not before."""
        for prepared in self._prepared.values():
            if prepared.request is request and prepared.model == model:
                return prepared.prompt_tokens
        counter = self._counter(model)
        texts = sum(counter.count_text(block.text) for block in request.system)
        spoken = sum(counter.count_message(message) + counter.count_thinking(message) for message in request.messages)
        volatile = sum(counter.count_text(str(message.metadata.get("volatile", ""))) for message in request.messages)
        return counter.corrected(texts + spoken + volatile + counter.count_tools(request.tools))

    def describe_counting(self, model: str) -> str:
        """One line for `status`: how tokens are counted for a model, and why so."""
        return self._counter(model).describe()

    # ------------------------------------------------------------------------------------------------------------- room

    def _make_room(self, session: str, terms: Terms, trigger: str, now: datetime) -> list[str]:
        view = self._conversation.view(session)
        ids = [message.id for message in view.messages if message.id is not None]
        plan = floor_plan(view, self._conversation.places(ids), terms, now, trigger=trigger)
        try:
            carry_out(self._conversation, plan, now)
        except StaleView:
            # Somebody undid or compacted meanwhile: what the next call sees is measured again, and shortened then.
            return []
        return self._news(plan)

    def _news(self, plan: Plan) -> list[str]:
        """What to tell the person: that a context is at its floor once, until it is no longer (F02)."""
        at_floor = plan.at_floor(self._settings.emergency_threshold)
        known = plan.session in self._at_floor
        (self._at_floor.add if at_floor else self._at_floor.discard)(plan.session)
        return list(plan.notices[:-1] if at_floor and known else plan.notices)

    def _measure(self, view: View, terms: Terms) -> Pressure:
        return measure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)

    def _terms(self, turn: Turn, model: str, limits: Limits) -> tuple[Terms, Frame]:
        return self._terms_of(turn.session, turn.volatile, model, limits)

    def _terms_of(self, session: str, volatile: str, model: str, limits: Limits) -> tuple[Terms, Frame]:
        counter = self._counter(model)
        frame, fixed = self._frame(role_of(session), model, counter)
        terms = Terms(
            budgets=self._budgets(limits),
            counter=counter,
            fixed=fixed,
            adding=Size(counter.count_text(volatile), utf8_length(volatile)) if volatile else Size(),
            target=self._settings.target,
            threshold=self._settings.emergency_threshold,
            protected=self._toolbox.protected,
        )
        return terms, frame

    def _budgets(self, limits: Limits) -> Budgets:
        return budgets(
            limits,
            max_context_tokens=self._settings.max_context_tokens,
            reserve_tokens=self._settings.reserve_tokens,
            max_request_bytes=self._settings.max_request_bytes,
            max_images=self._settings.max_images,
        )

    def _frame(self, role: str, model: str, counter: TokenCounter) -> tuple[Frame, Size]:
        if (role, model) not in self._frames:
            frame = Frame(self._rules, self._persona, self._toolbox.specs(role), role)
            self._frames[role, model] = (frame, frame.size(counter))
        return self._frames[role, model]

    def _counter(self, model: str) -> TokenCounter:
        if model not in self._counters:
            counter = self._counter_for(model)
            known = self._facts.calibration(model)
            self._counters[model] = counter.calibrated(known) if known else counter
        return self._counters[model]

    def _remember(self, turn: Turn, model: str, view: View, terms: Terms, request: Request, prompt_tokens: int) -> None:
        last = next((m.id for m in reversed(view.messages) if m.id is not None), 0)
        estimated = estimated_prompt(view, terms.counter, terms.fixed, terms.adding)
        self._prepared[turn.id] = _Prepared(model, view.prefix_rev, last, estimated, terms, request, prompt_tokens)
        while len(self._prepared) > _CALLS_KEPT:
            self._prepared.popitem(last=False)
