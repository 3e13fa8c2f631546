"""Approval of effects: which are allowed at once, which need the owner's decision, and their outcome.

Invariants (I10):
- Decisions depend on state, not on text: if the model has read anything the user did not say just now, an effect runs
  at once only if the user's own message asks for exactly it (`own_words`). Otherwise it waits for the owner, who is
  shown what will happen; in sessions of guests and rooms it is refused.
- A tool marked `asked_each_time` always needs an approval. Calls matching a pattern that the owner allowed for some
  time run at once in the owner's sessions, and are counted.
- An approved effect runs once, under its key, with exactly the arguments shown. After a crash, a keyed effect is run
  again under its key; for others the outcome is reported as unknown.
- An approval that expires is not executed, and that is reported (I11).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.approvals import (
    APPROVAL_STATE_WORDS,
    NOT_DONE,
    Answer,
    Approval,
    ApprovalPattern,
    ApprovalState,
    ProposedEffect,
    describe_outcome,
    read_answer,
)
from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.errors import OutcomeUnknown, ToolError, UsageError
from assistant.core.messages import Media, ToolCall
from assistant.core.notices import NoticeKind
from assistant.core.ports import Tool, ToolContext
from assistant.core.quoting import FAILURE_PREFIX
from assistant.core.records import Button, OutgoingMessage, Turn, is_from_schedule
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.runtime.own_words import read_own_words, rules_read
from assistant.runtime.tool_registry import ToolRegistry
from assistant.store.script.approvals import StoredApprovals, dump_arguments

MOST_OF_A_TURN = 5
_NOT_ASKED_FOR = (
    "this turn has read text that the person did not write now, and their own newest message does not ask for exactly "
    "this"
)
_EACH_TIME = "it needs the person's yes each time"
_ASKED = (
    f"{NOT_DONE} {{effect}} was not done: {{reason}}. They are asked below your answer (approval {{number}}). Do not "
    "try it in another way, and do not say that it is done."
)
_REFUSED = f"{NOT_DONE} {{effect}} was not done: {{reason}}. Only they can ask for it, in a message of their own."


@dataclass(frozen=True, slots=True)
class ApprovalGate:
    """Checks tool calls of a model before they run."""

    stored: StoredApprovals
    conversation: Conversation
    toolbox: ToolRegistry
    zone: ZoneInfo
    valid_for: timedelta
    allowed_for: timedelta

    async def review(self, turn: Turn, call: ToolCall, context: ToolContext) -> str | None:
        """Return the tool result in place of a call that needs approval, or None if the call may run."""
        tool = self.toolbox.find(call.name, session_role(turn.session))
        if tool is None or not (turn.untrusted or tool.asked_each_time) or not tool.needs_word(call.arguments, context):
            return None
        if (known := self.stored.find_by_key(context.key)) is not None:
            return _told_to_model(known, tool)
        if not tool.asked_each_time and await self._is_asked_for(tool, turn, call, context):
            return None
        try:
            effect, pattern = await tool.describe(call.arguments, context), tool.pattern(call.arguments, context)
        except ToolError as error:
            return f"{FAILURE_PREFIX}{error}"
        is_owner = session_role(turn.session) == "owner"
        if pattern and is_owner and self.stored.use_allowed(call.name, pattern.key, context.now) is not None:
            return None
        return _told_to_model(self._propose(turn, call, context, effect, pattern), tool)

    async def _is_asked_for(self, tool: Tool, turn: Turn, call: ToolCall, context: ToolContext) -> bool:
        role, own = session_role(turn.session), read_own_words(turn, self.zone)
        if tool.words is not None and own.ask_for(tool.words, call.arguments, context):
            return True
        answered: dict[str, str] = {}

        async def run_reading(reading: ToolCall) -> str:
            """Each lookup once, however many of the message's sentences need it."""
            known = self.toolbox.find(reading.name, role)
            if known is None or known.needs_word(reading.arguments, context):
                raise LookupError(reading.name)
            asked = f"{reading.name} {json.dumps(dict(reading.arguments), sort_keys=True, default=str)}"
            if asked not in answered:
                looking = replace(context, key=f"{context.key}:look")
                answered[asked] = (await self.toolbox.run(reading, looking, role))[0]
            return answered[asked]

        view = self.conversation.load_view(turn.session)
        return await rules_read(call, turn, view, self.toolbox.specs(role), own, run_reading)

    def _propose(
        self, turn: Turn, call: ToolCall, context: ToolContext, effect: str, pattern: ApprovalPattern | None
    ) -> Approval:
        place = turn.items[-1].incoming
        proposed = ProposedEffect(
            context.key,
            turn.session,
            turn.generation,
            turn.scope,
            turn.id,
            call.id,
            call.name,
            call.arguments,
            effect,
            place.bridge,
            place.target,
            context.now,
            context.now + self.valid_for,
            pattern.key if pattern else "",
            pattern.allows if pattern else "",
        )
        of_turn = self.stored.list_by_turn(turn.id)
        pending = [approval for approval in of_turn if approval.state == "pending"]
        is_asked = any(
            approval.tool == call.name and dump_arguments(approval) == dump_arguments(proposed) for approval in pending
        )
        may_ask = session_role(turn.session) == "owner" and len(pending) < MOST_OF_A_TURN and not is_asked
        return self.stored.propose(proposed, "pending" if may_ask else "refused")

    def question(self, turn: Turn) -> tuple[str, tuple[Button, ...]]:
        """Return the text and buttons below a turn's answer: what was not done, and how the owner decides."""
        proposed = self.stored.list_by_turn(turn.id)
        asked = [approval for approval in proposed if approval.state == "pending"]
        effects = {approval.effect for approval in asked}
        refused = list(dict.fromkeys(a.effect for a in proposed if a.state == "refused" and a.effect not in effects))
        parts = [self._ask(asked)] if asked else []
        if refused:
            shown = [f"- {effect}" for effect in refused[:MOST_OF_A_TURN]]
            more = [f"- and {len(refused) - MOST_OF_A_TURN} more"] if len(refused) > MOST_OF_A_TURN else []
            parts.append("\n".join(["Not done, since your own message did not ask for it:", *shown, *more]))
        return "".join(f"\n\n{part}" for part in parts), self._buttons(asked)

    def _ask(self, asked: Sequence[Approval]) -> str:
        until = format_moment(asked[0].expires_at, self.zone)
        head = "Not done yet, since your own message did not ask for it and I have read other text."
        if all((tool := self.toolbox.find(it.tool, "owner")) and tool.asked_each_time for it in asked):
            head = "Not done yet, since it needs your yes."
        words = "yes, no or always" if asked[0].allows else "yes or no"
        answer = f"Answer {words}" if len(asked) == 1 else "Say which"
        return "\n".join([f"{head} {answer}, until {until}:", *map(self._line, asked)])

    def _line(self, it: Approval) -> str:
        line = f"- {it.id}: {it.effect}. `/approvals yes {it.id}` does it, `/approvals no {it.id}` drops it."
        days = pluralize(self.allowed_for.days, "day")
        more = f" `/approvals yes {it.id} --always` does it and allows for {days}: {it.allows}."
        return line + (more if it.allows else "")

    def _buttons(self, asked: Sequence[Approval]) -> tuple[Button, ...]:
        several = len(asked) > 1
        return tuple(
            Button(f"{word} {it.id}" if several else word, f"/approvals {command}")
            for it in asked
            for word, command in (
                ("Yes", f"yes {it.id}"),
                ("No", f"no {it.id}"),
                *([("Always", f"yes {it.id} --always")] if it.allows else []),
            )
        )


def _told_to_model(approval: Approval, tool: Tool) -> str:
    form = _REFUSED if approval.state == "refused" else _ASKED
    reason = _EACH_TIME if tool.asked_each_time else _NOT_ASKED_FOR
    return form.format(effect=approval.effect, number=approval.id, reason=reason)


@dataclass(frozen=True, slots=True)
class ApprovalService:
    """The owner's side: pending approvals and decisions."""

    stored: StoredApprovals
    toolbox: ToolRegistry
    zone: ZoneInfo
    clock: Callable[[], datetime]
    wake: Callable[[], None]
    allowed_for: timedelta

    async def decide(self, number: int, answer: Answer, *, by: str = "") -> Approval:
        """Execute or decline an approval. `by`: the turn that answers. Raises `UsageError` if none is pending under the
        number, and for "always" where every call needs its own approval."""
        now = self.clock()
        approval = self.stored.get(number)
        if approval is None or approval.state == "refused":
            raise UsageError(f"No approval has the number {number}. Nothing was changed; `/approvals` lists them.")
        if not self.stored.is_asked(approval):
            raise UsageError("The answer that asks for it is still being written. Nothing was changed; try again then.")
        if not approval.waits_at(now):
            raise UsageError(
                f"Approval {number} {APPROVAL_STATE_WORDS[_state_at(approval, now)]}. Nothing was changed."
            )
        if answer == "always" and not approval.allows:
            raise UsageError(
                f"Approval {number} is asked about each time: answer yes or no. Nothing was changed; it still waits."
            )
        until = now + self.allowed_for if answer == "always" else None
        state: ApprovalState = "declined" if answer == "no" else "approved"
        if not self.stored.decide(number, state, by, now, allowed_until=until):
            raise UsageError(f"Approval {number} was decided meanwhile. Nothing was changed.")
        if state == "approved":
            await self._carry_out(approval, by)
        return self._get(number)

    def revoke(self, number: int) -> Approval:
        """Revoke a standing permission. Raises `UsageError` if the approval grants none."""
        if not self.stored.revoke(number, self.clock()):
            raise UsageError(
                f"Approval {number} allows nothing now. Nothing was changed; `/approvals allowed` lists what does."
            )
        return self._get(number)

    async def answer_turn(self, turn: Turn) -> str | None:
        """If a turn's message answers the single latest approval, decide it and return the reply, else None. Resumes
        after a crash."""
        if len(turn.items) != 1 or session_role(turn.session) != "owner" or is_from_schedule(turn.items[0].incoming):
            return None
        incoming = turn.items[0].incoming
        answer = read_answer(incoming.content)
        if answer is None or incoming.trust != "owner" or incoming.media:
            return None
        decided = self.stored.list_decided_by(turn.id)
        if not decided:
            asked = [it for it in self.stored.list_pending(turn.session) if self.stored.was_asked_last(it)]
            if len(asked) != 1 or not asked[0].waits_at(self.clock()):
                return None
            if answer == "always" and not asked[0].allows:
                done = self.describe(await self.decide(asked[0].id, "yes", by=turn.id))
                return f"{done}\n\nYou are asked about it each time, so you will be asked again."
            return self.describe(await self.decide(asked[0].id, answer, by=turn.id))
        if decided[0].state == "approved":
            await self._finish_interrupted(decided[0])
        return self.describe(self._get(decided[0].id))

    def describe(self, approval: Approval) -> str:
        """Describe the outcome as Markdown."""
        return describe_outcome(approval, self.zone)

    async def recover_after_crash(self) -> None:
        """At start-up, finish approved effects without an outcome. Those decided by a turn are resumed by the turn."""
        for approval in self.stored.list_approved():
            if not approval.decided_by:
                await self._finish_interrupted(approval)

    def check_due(self) -> None:
        """Mark expired approvals as lapsed and report them."""
        if self.stored.lapse(lambda it: NoticeKind.APPROVAL_LAPSED.fill(it.id, effect=it.effect), self.clock()):
            self.wake()

    async def _finish_interrupted(self, approval: Approval) -> None:
        if self.toolbox.effects(approval.tool) == "once":
            text = "the assistant was stopped while it was being done; check before you ask for it again"
            self._end(approval, "uncertain", text, told=not approval.decided_by)
        else:
            await self._carry_out(approval, approval.decided_by, told=not approval.decided_by)

    async def _carry_out(self, approval: Approval, by: str, *, told: bool = False) -> None:
        """Execute under the effect's key, with the time of the original request, to which "tomorrow" refers."""
        context = ToolContext(approval.session, approval.scope, by or approval.turn, approval.key, approval.created_at)
        role = session_role(approval.session)
        try:
            text, ok = await self.toolbox.run(approval.call, context, role, raise_store_errors=True)
        except OutcomeUnknown as error:
            return self._end(approval, "uncertain", str(error).rstrip("."), told=told)
        return self._end(approval, "done" if ok else "failed", text.removeprefix(FAILURE_PREFIX), told=told)

    def _end(self, approval: Approval, state: ApprovalState, result: str, *, told: bool) -> None:
        """`told`: the outcome needs a notice. Files are sent with the turn's answer, or separately."""

        def message(files: tuple[Media, ...]) -> OutgoingMessage | None:
            if approval.decided_by or not (files or told):
                return None
            text = self.describe(replace(approval, state=state, result=result))
            notice = NoticeKind.APPROVAL_ENDED.fill(approval.id, text=text)
            outgoing = notice.to_message(
                f"approval:{approval.id}", approval.session, approval.scope, approval.bridge, approval.target
            )
            return replace(outgoing, media=files)

        self.stored.end(approval, state, result, self.clock(), message)
        self.wake()

    def _get(self, number: int) -> Approval:
        approval = self.stored.get(number)
        assert approval is not None
        return approval


def _state_at(approval: Approval, now: datetime) -> ApprovalState:
    return "lapsed" if approval.state == "pending" and not approval.waits_at(now) else approval.state
