"""Runs one turn: from a user's request, through model calls and tools, to the reply.

Invariants:
- Everything a model or tool returns is logged before the next step uses it; a turn can be resumed from the stores at
  any step, with the same result as if it had not been interrupted (I1).
- A tool run is recorded before it starts. After a crash, reads and keyed effects run again with the same key; others
  are reported to the model as interrupted, and never repeated.
- A turn always ends as answered, failed or aborted, with one reply or notice per place that asked (I8). Only an
  unwritable data folder leaves it open; it is resumed when possible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import field
from datetime import datetime
from typing import Any

from assistant.core.bridge_api import TurnEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import BudgetExceeded, ModelError
from assistant.core.messages import ABORTED_MARKER, STOPPED_REPLY, Message, ToolCall, Usage
from assistant.core.model_api import (
    MAX_ANSWER_CHARACTERS,
    OFFLINE_MODEL,
    CallPurpose,
    Fallback,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
)
from assistant.core.notices import NoticeKind
from assistant.core.ports import Model, ModelPair, ToolContext
from assistant.core.records import Turn, TurnState, is_timed_schedule_prompt
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.core.text import pluralize
from assistant.gateway.notices import NoticeSender
from assistant.runtime.approvals import ApprovalGate, ApprovalService
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.long_texts import announce_long_text, cut_endless_answer, prepare_if_long
from assistant.runtime.secret_notice import announce_secret
from assistant.runtime.tool_registry import ToolRegistry
from assistant.runtime.turn_deliveries import deliveries_of_turn, schedule_heading
from assistant.runtime.turn_guard import TurnGuard
from assistant.runtime.turn_messages import is_aborted, newest_reply, successful_calls, tool_result, unanswered_calls
from assistant.runtime.voice import has_voice
from assistant.settings.sections import TurnSettings

ASK_AGAIN = "`/retry` asks again"
EMPTY_REPLY = f"(The model ended its turn without saying anything. Your message is kept; {ASK_AGAIN}.)"
REFUSED_REPLY = "(The model declined to answer this. Your message is kept; say it in other words.)"
UNAVAILABLE_REPLY = "I cannot answer just now. Your message is kept; try again later."
TRUNCATED_REPLY_NOTE = "\n\n*(Cut off here: the answer reached `model.max_output_tokens`.)*"


@dataclass(slots=True)
class TurnControl:
    """State of a running turn. Not needed after a crash, but kept while the disk rejects writes.

    - `is_started`: whether its task has started; cancelling it before would not end the turn.
    - `abort_reason`: set once the turn is to stop.
    - `unsaved_reply`: the newest reply with the number of replies logged before it, so that no reply is paid for twice.
    - `models`: set at the first model call and kept to the end of the turn; `exit_stack` releases them. A turn resumed
      after a restart uses the current ones.
    - `partial`: text streamed so far of the current answer.
    - `over_budget`: why the budget blocked a model for the newest reply.
    - `fallback`: why a model other than the first gave it.
    """

    turn: Turn
    is_started: bool = False
    abort_reason: str | None = None
    unsaved_reply: tuple[int, ModelReply] | None = None
    models: ModelPair | None = None
    exit_stack: ExitStack = field(default_factory=ExitStack)
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    partial: str = ""
    over_budget: str = ""
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The result of a turn. `text` is what was sent; `exit_code` as on the command line."""

    turn: str
    session: str
    state: TurnState
    text: str
    exit_code: int = 0
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    pressure: float = 0.0
    fallback: Fallback | None = None


class TurnRunner:
    """Runs turns. Stateless between turns."""

    def __init__(
        self,
        conversation: Conversation,
        models: CurrentModels,
        toolbox: ToolRegistry,
        context: ContextWindow,
        guard: TurnGuard,
        settings: TurnSettings,
        publish: Callable[[TurnEvent], None],
        notices: NoticeSender,
        clock: Callable[[], datetime],
        gate: ApprovalGate,
        approvals: ApprovalService,
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        self._conversation = conversation
        self._models = models
        self._toolbox = toolbox
        self._context = context
        self._guard = guard
        self._settings = settings
        self._publish = publish
        self._notices = notices
        self._clock = clock
        self._gate = gate
        self._approvals = approvals
        self._tracer = tracer

    async def run(self, control: TurnControl) -> TurnOutcome:
        """Run or resume the turn to its end. Raises `StoreError` if the data folder is not writable; the turn stays
        open."""
        with self._tracer.span("turn", role=session_role(control.turn.session)) as span:
            outcome = await self._run(control)
            span.set_attributes(state=outcome.state)
        return outcome

    def fail(self, control: TurnControl, text: str, exit_code: int = 1, *, error: str = "") -> TurnOutcome:
        """End the turn with a notice; `error` is what `status` tells the owner, the same unless given. Raises
        `StoreError`."""
        self._close_calls(control.turn, "failed: the turn ended before this tool ran")
        return self._finish(control, "failed", None, text, exit_code, error)

    async def _run(self, control: TurnControl) -> TurnOutcome:
        if control.abort_reason is not None:
            return self._abort(control)
        try:
            async with asyncio.timeout(self._settings.max_seconds):
                return await self._until_answered(control)
        except TimeoutError:
            limit = f"{self._settings.max_seconds:g} seconds"
            text = f"This took longer than {limit} (turn.max_seconds), so I stopped. Your message is kept; {ASK_AGAIN}."
            return self.fail(control, text)
        except ModelError as error:
            self._notices.note_unanswered(control.turn)
            return self.fail(control, _error_text(error, control.turn), error.exit_code, error=str(error))
        except asyncio.CancelledError:
            if control.abort_reason is None:
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return self._abort(control)

    async def _until_answered(self, control: TurnControl) -> TurnOutcome:
        self._notices.announce_new_conversation(control.turn)
        announce_secret(control.turn, self._notices)
        announce_long_text(control.turn, self._notices)
        while True:
            messages = self._conversation.turn_messages(control.turn)
            last = newest_reply(messages)
            if is_aborted(messages):
                return self._finish(control, "aborted", None, STOPPED_REPLY, 1)
            if last is not None and not last.tool_calls and last is messages[-1]:
                # A reply that was logged but not delivered before a crash.
                return self._answer(control, last)
            # Counted in the log, so that a resumed turn gets no additional steps.
            steps = sum(message.role == "assistant" for message in messages)
            if steps >= self._settings.max_steps:
                limit = pluralize(self._settings.max_steps, "step")
                return self.fail(control, f"I stopped after {limit} (turn.max_steps). Say how to continue.")
            if last is None and (answer := await self._approvals.answer_turn(control.turn)) is not None:
                return self._answer(control, Message("assistant", answer))
            if open_calls := unanswered_calls(messages):
                await self._run_tools(control.turn, open_calls)
                self._join_waiting_messages(control)
                messages = self._conversation.turn_messages(control.turn)
            if stop_reason := self._guard.stop_reason(control.turn.session, messages):
                return self.fail(control, stop_reason)
            if control.unsaved_reply is None or control.unsaved_reply[0] != steps:
                control.unsaved_reply = (steps, await self._call_model(control))
                await self._context.wait_for_round()
            reply = control.unsaved_reply[1]
            if not reply.message.tool_calls:
                await prepare_if_long(self._conversation, reply.message)
                return self._answer(control, reply.message, cut=reply.stop == "max_tokens")
            view = self._conversation.load_view(control.turn.session).messages
            message = self._toolbox.with_direct_calls(reply.message).with_unique_call_ids(view, control.turn.id)
            self._note_what_was_read(control)
            self._conversation.record_messages(control.turn, [message], self._clock())
            self._discard_partial(control)

    # ------------------------------------------------------------------------------------------------------------ model

    async def _call_model(self, control: TurnControl) -> ModelReply:
        """Call the model; if the provider rejects the prompt as too long, shrink the view and retry."""
        turn = control.turn
        if control.models is None:
            control.models = control.exit_stack.enter_context(self._models.use())
        model = control.models.answering
        overflow: ModelError | None = None
        for attempt in range(self._settings.overflow_retries + 1):
            if overflow is not None:
                await self._context.shrink_after_overflow(turn, attempt)
            request = await self._context.prepare(turn, model, self._clock())
            try:
                reply = await self._stream(control, model, request)
            except ModelError as error:
                if error.kind != "overflow":
                    raise
                overflow = error
                continue
            if reply.stop != "overflow":
                self._context.record_usage(turn, reply, self._clock())
                return reply
            overflow = ModelError("The model's context window is full.", kind="overflow", provider=model.provider)
        assert overflow is not None
        raise overflow

    async def _stream(self, control: TurnControl, model: Model, request: ModelRequest) -> ModelReply:
        turn = control.turn
        control.partial = control.over_budget = ""
        reply: ModelReply | None = None
        calling = model.stream(request, _purpose(turn), session=turn.session, turn=turn.id)
        async with aclosing(calling) as events:
            async for event in events:
                match event:
                    case TextDelta(text) if len(control.partial) <= MAX_ANSWER_CHARACTERS:
                        self._emit(turn, "delta", text=text if control.partial else schedule_heading(turn) + text)
                        control.partial += text
                    case ModelNotice():
                        if event.restarted:
                            self._discard_partial(control)
                        control.over_budget = event.over_budget or control.over_budget
                        if event.notice is not None:
                            self._notices.send_to_turn(turn, event.notice)
                        elif session_role(turn.session) == "owner":
                            self._emit(turn, "notice", text=event.text, progress=True)
                    case ModelReply():
                        reply = cut_endless_answer(event)
        if reply is None:
            raise ModelError("The model's stream ended without an answer. Your message is kept.", kind="network")
        control.fallback = reply.fallback
        if reply.fallback is not None:
            self._notices.report_fallback(turn, reply.fallback)
        control.usage = control.usage + reply.usage
        control.model = reply.message.model or model.name
        return reply

    # ------------------------------------------------------------------------------------------------------------ tools

    def _note_what_was_read(self, control: TurnControl) -> None:
        """Record untrusted sources before the resulting calls are logged, so that a process that resumes the turn knows
        them."""
        sources = self._context.untrusted_sources(control.turn)
        control.turn = self._conversation.mark_untrusted(control.turn, sources)

    async def _run_tools(self, turn: Turn, calls: Sequence[ToolCall]) -> None:
        begun = {run.call.id for run in self._conversation.list_tool_runs(turn)}
        for call in calls:
            ok = False
            if call.id in begun and self._toolbox.effects(call.name) == "once":
                text = (
                    f"[interrupted] {call.name} was running when the assistant was stopped. Whether it took effect is "
                    "not known, and it was not run again: check before you repeat it."
                )
            elif (told := await self._gate.review(turn, call, context := self._tool_context(turn, call))) is not None:
                text = told
            else:
                if call.id not in begun:
                    self._conversation.start_tool(turn, call, self._clock())
                self._emit(turn, "tool", name=call.name, state="started", call=call.id)
                text, ok = await self._toolbox.run(call, context, session_role(turn.session))
                self._emit(turn, "tool", name=call.name, state="done" if ok else "failed", call=call.id)
            result = tool_result(call, text, ok=ok)
            await prepare_if_long(self._conversation, result)
            self._conversation.record_messages(turn, [result], self._clock())
            await self._toolbox.keep(call.name)

    def _tool_context(self, turn: Turn, call: ToolCall) -> ToolContext:
        return ToolContext(turn.session, turn.scope, turn.id, f"{turn.id}:{call.id}", self._clock(), _purpose(turn))

    def _join_waiting_messages(self, control: TurnControl) -> None:
        """Add waiting messages to the turn between tool rounds, if the settings say so."""
        if self._settings.on_message == "steer":
            for item in self._conversation.list_accepted(control.turn.session):
                if has_voice(item):
                    # It is transcribed first, and gets its own turn.
                    break
                control.turn = self._conversation.join_turn(control.turn, item, self._clock())
                announce_secret(control.turn, self._notices)
                announce_long_text(control.turn, self._notices)

    # ----------------------------------------------------------------------------------------------------------- ending

    def _answer(self, control: TurnControl, message: Message, *, cut: bool = False) -> TurnOutcome:
        body = message.content.strip() or (REFUSED_REPLY if message.metadata.get("refusal") else EMPTY_REPLY)
        if cut:
            body += TRUNCATED_REPLY_NOTE
        if not control.over_budget:
            return self._finish(control, "answered", message, body, 0)
        session, now = control.turn.session, self._clock()
        earlier = self._conversation.turn_messages(control.turn)
        body += self._guard.footnote_for(session, control.over_budget, earlier, message.model, now, body=body)
        outcome = self._finish(control, "answered", message, body, 0)
        self._guard.mark_footnote_shown(session, now)
        return outcome

    def _abort(self, control: TurnControl) -> TurnOutcome:
        turn, reason = control.turn, control.abort_reason or "stopped"
        if not is_aborted(self._conversation.turn_messages(turn)):
            self._close_calls(turn, "aborted")
            text = f"{ABORTED_MARKER} {reason} The answer above this line is incomplete or missing."
            messages = [Message("system", text)]
            if control.partial.strip():
                messages.insert(0, Message("assistant", control.partial, model=control.model))
            self._conversation.record_messages(turn, messages, self._clock())
        return self._finish(control, "aborted", None, reason, 1)

    def _close_calls(self, turn: Turn, word: str) -> None:
        """Add results for open calls, so that the stored view has no call without a result (F08)."""
        open_calls = unanswered_calls(self._conversation.turn_messages(turn))
        if open_calls:
            results = [tool_result(call, f"[{word}]", ok=False) for call in open_calls]
            self._conversation.record_messages(turn, results, self._clock())

    def _finish(
        self,
        control: TurnControl,
        state: TurnState,
        reply: Message | None,
        body: str,
        exit_code: int,
        error: str = "",
    ) -> TurnOutcome:
        turn = control.turn
        answered = state == "answered"
        body = body if answered else NoticeKind.TURN_ENDED.fill(text=body).text
        question, buttons = self._gate.question(turn)
        body += question
        outgoing = deliveries_of_turn(turn, schedule_heading(turn) + body, "reply" if answered else "notice", buttons)
        error = "" if answered else error or body
        # The offline mode does at once all that it will do; a model may go on with a request in later turns.
        carried_out = control.model == OFFLINE_MODEL and any(
            self._toolbox.changes(call, self._tool_context(turn, call))
            for call in successful_calls(self._conversation.turn_messages(turn))
        )
        self._conversation.finish_turn(
            turn, state, reply, outgoing, self._clock(), error=error, carried_out=carried_out
        )
        self._context.discard_turn(turn.id)
        control.exit_stack.close()
        self._emit(turn, "turn", state=state, message_ids=[item.message_id for item in turn.items])
        pressure = self._context.pressure(turn.session) or 0.0
        return TurnOutcome(
            turn.id, turn.session, state, body, exit_code, control.model, control.usage, pressure, control.fallback
        )

    # ----------------------------------------------------------------------------------------------------------- events

    def _discard_partial(self, control: TurnControl) -> None:
        control.partial = ""
        self._emit(control.turn, "discard")

    def _emit(self, turn: Turn, kind: Any, **data: Any) -> None:
        self._publish(TurnEvent(kind, turn.session, turn.id, data))


def _purpose(turn: Turn) -> CallPurpose:
    """Return the purpose of the turn's model calls: "schedule" if only schedules asked, so that nobody is waiting."""
    waited_for = any(not is_timed_schedule_prompt(item.incoming) for item in turn.items)
    return "chat" if waited_for or not turn.items else "schedule"


def _error_text(error: ModelError, turn: Turn) -> str:
    """Return the error text for the user: internals, addresses and accounts are only shown to the owner."""
    if session_role(turn.session) == "owner" or isinstance(error, BudgetExceeded):
        return str(error)
    return UNAVAILABLE_REPLY
